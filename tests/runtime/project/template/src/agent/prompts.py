"""The system prompt of the model."""

SYSTEM_PROMPT = "You are a helpful assistant. It is {time}."
