"""A conversation with a memory: a model that is given what is remembered, or without one the memory itself."""

from told.faces.chat.conversation import ChatSession, ask_model
from told.faces.chat.reply import ChatReply

__all__ = ["ChatSession", "ChatReply", "ask_model"]
