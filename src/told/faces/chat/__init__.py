"""A conversation with a memory: a model that is given what is remembered, or without one the memory itself."""

from told.faces.chat.conversation import Chat
from told.faces.chat.reply import Reply

__all__ = ["Chat", "Reply"]
