"""What the model is told first."""

SYSTEM_PROMPT = "You are a helpful assistant. It is {time}."
