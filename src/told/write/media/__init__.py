"""Images in what was said: taken out of messages, looked at before anything decodes them, and read."""
