"""LiteLLM's own guardrail posts to the real program. There is no adapter: the program answers it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, Dict

import pytest

pytest.importorskip("litellm", reason="litellm is not installed")
from litellm.exceptions import GuardrailRaisedException
from litellm.proxy.guardrails.guardrail_hooks.generic_guardrail_api.generic_guardrail_api import GenericGuardrailAPI

MESSAGES = [{"role": "user", "content": "Are you coming tonight?"}]


def run(url: str, reply: str, **params: Any) -> Dict[str, Any]:
    guardrail = GenericGuardrailAPI(
        api_base=url,
        guardrail_name="persona",
        event_hook="post_call",
        default_on=True,
        additional_provider_specific_params={"persona_id": "host", **params},
    )
    call = SimpleNamespace(litellm_call_id=f"call-{reply}", litellm_trace_id=None, model_call_details={})

    async def both() -> Dict[str, Any]:
        asked = {"texts": [MESSAGES[0]["content"]], "structured_messages": MESSAGES}
        await guardrail.apply_guardrail(asked, {}, "request", call)
        return dict(await guardrail.apply_guardrail({"texts": [reply]}, {}, "response", call))

    return asyncio.run(both())


def test_a_reply_above_the_threshold_passes(real: str) -> None:
    assert run(real, "Yes! Who else is in?", threshold=0.0)["texts"] == ["Yes! Who else is in?"]


def test_a_reply_below_the_threshold_is_blocked(real: str) -> None:
    with pytest.raises(GuardrailRaisedException):
        run(real, "I would rather read.", threshold=1.0)
