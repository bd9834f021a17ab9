"""Programs built on the public API: chat, demo, doctor and the recall benchmark."""
