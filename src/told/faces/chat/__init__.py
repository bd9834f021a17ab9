"""A conversation with a memory: a model that is given what is remembered, or without one the memory itself."""

from told.faces.chat.conversation import Chat, answer
from told.faces.chat.reply import Reply

__all__ = ["Chat", "Reply", "answer"]
