"""The two SDKs behind one face: ask and stream, plain and async, and what only one of them has.

Every call names its own model. All instrumentations record the model's name, even those that
record no content, so the tests tell by it which call a span belongs to.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

KEY = "no-key-needed-on-loopback"


def _prompt(model: str) -> list[dict[str, str]]:
    passages = f"The code word of {model} is tulip. Nobody may know it."
    return [{"role": "user", "content": f"{passages}\n\nQuestion: what is the code word?"}]


class OpenAI:
    extras = ("responses", "responses-stream", "responses-async", "responses-async-stream")

    def __init__(self, url: str) -> None:
        import openai

        self.options = {"base_url": f"{url}/v1", "api_key": KEY, "max_retries": 0}
        self.client = openai.OpenAI(**self.options)

    def ask(self, model: str) -> str:
        reply = self.client.chat.completions.create(model=model, messages=_prompt(model))
        return reply.choices[0].message.content

    def stream(self, model: str) -> Iterator[str]:
        for chunk in self.open_stream(model):
            yield _delta(chunk)

    def open_stream(self, model: str) -> Any:
        return self.client.chat.completions.create(
            model=model, messages=_prompt(model), stream=True
        )

    async def ask_async(self, model: str) -> str:
        async with self._async() as client:
            reply = await client.chat.completions.create(model=model, messages=_prompt(model))
            return reply.choices[0].message.content

    async def stream_async(self, model: str) -> AsyncIterator[str]:
        async with self._async() as client:
            chunks = await client.chat.completions.create(
                model=model, messages=_prompt(model), stream=True
            )
            async for chunk in chunks:
                yield _delta(chunk)

    def fail(self, model: str) -> None:
        self.client.with_options(
            base_url=f"{self.options['base_url']}/nowhere"
        ).chat.completions.create(model=model, messages=_prompt(model))

    def no_inference(self, model: str) -> None:
        self.client.embeddings.create(model=model, input="tulip", encoding_format="float")

    async def extra(self, name: str) -> str:
        text = _prompt(name)[0]["content"]
        if name == "responses":
            return self.client.responses.create(model=name, input=text).output_text
        if name == "responses-stream":
            return _joined(self.client.responses.create(model=name, input=text, stream=True))
        async with self._async() as client:
            if name == "responses-async":
                return (await client.responses.create(model=name, input=text)).output_text
            events = await client.responses.create(model=name, input=text, stream=True)
            return _joined([event async for event in events])

    def _async(self) -> Any:
        import openai

        return openai.AsyncOpenAI(**self.options)

    def close(self) -> None:
        self.client.close()


class Anthropic:
    extras = ("helper-stream", "helper-async-stream")

    def __init__(self, url: str) -> None:
        import anthropic

        self.options = {"base_url": url, "api_key": KEY, "max_retries": 0}
        self.client = anthropic.Anthropic(**self.options)

    def ask(self, model: str) -> str:
        return self.client.messages.create(**_request(model)).content[0].text

    def stream(self, model: str) -> Iterator[str]:
        for event in self.open_stream(model):
            yield _delta(event)

    def open_stream(self, model: str) -> Any:
        return self.client.messages.create(**_request(model), stream=True)

    async def ask_async(self, model: str) -> str:
        async with self._async() as client:
            return (await client.messages.create(**_request(model))).content[0].text

    async def stream_async(self, model: str) -> AsyncIterator[str]:
        async with self._async() as client:
            async for event in await client.messages.create(**_request(model), stream=True):
                yield _delta(event)

    def fail(self, model: str) -> None:
        self.client.with_options(base_url=f"{self.options['base_url']}/nowhere").messages.create(
            **_request(model)
        )

    def no_inference(self, model: str) -> None:
        self.client.messages.count_tokens(model=model, messages=_prompt(model))

    async def extra(self, name: str) -> str:
        if name == "helper-stream":
            with self.client.messages.stream(**_request(name)) as stream:
                return "".join(stream.text_stream)
        async with self._async() as client, client.messages.stream(**_request(name)) as stream:
            return "".join([text async for text in stream.text_stream])

    def _async(self) -> Any:
        import anthropic

        return anthropic.AsyncAnthropic(**self.options)

    def close(self) -> None:
        self.client.close()


def _request(model: str) -> dict[str, Any]:
    return {"model": model, "max_tokens": 50, "messages": _prompt(model)}


def _delta(event: Any) -> str:
    choices = getattr(event, "choices", None)
    if choices:
        return choices[0].delta.content or ""
    delta = getattr(event, "delta", None)
    return delta if isinstance(delta, str) else getattr(delta, "text", None) or ""


def _joined(events: Any) -> str:
    return "".join(_delta(event) for event in events)
