from denizen.adapters.models.embedded.gguf import GgufHeader, plan_template

# The parts of the model's own template that are corrected.
_CODER = r"""
{{- "\n</tools>\n\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{{\"name\": <function-name>, \"arguments\": <args-json-object>}}\n</tool_call><|im_end|>\n" }}
{{- '\n<tool_call>\n{"name": "' }}
{{- tool_call.name }}
{{- '", "arguments": ' }}
{{- tool_call.arguments | tojson }}
{{- '}\n</tool_call>' }}
{{- '\n<tool_response>\n' }}
{{- message.content }}
{{- '\n</tool_response>' }}
"""  # noqa: E501 - as it stands in the file


def _header(template: str, basename: str = "Qwen2.5-Coder") -> GgufHeader:
    return GgufHeader({"general.basename": basename, "tokenizer.chat_template": template})


def test_qwen_coder_is_asked_for_the_fenced_json_that_it_writes() -> None:
    template = plan_template(_header(_CODER))

    assert template is not None
    assert "<tool_call>" not in template
    assert "</tool_call>" not in template
    assert r"""{{- '\n```json\n{"name": "' }}""" in template
    assert r"{{- '}\n```' }}" in template
    assert (
        r"arguments:\n```json\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n```<|im_end|>"
        in template
    )


def test_a_tool_result_is_followed_by_the_line_that_stops_repeated_calls() -> None:
    template = plan_template(_header(_CODER))

    assert template is not None
    assert r"\n</tool_response>\nUse this result to answer my question in plain text." in template


def test_other_models_keep_their_own_template() -> None:
    assert plan_template(_header(_CODER, basename="Qwen2.5")) is None
    assert plan_template(GgufHeader({"tokenizer.chat_template": "{{ messages }}"})) is None


def test_another_edition_of_the_template_is_left_alone() -> None:
    assert plan_template(_header(_CODER.replace("XML tags", "tags"))) is None
    assert plan_template(GgufHeader({"general.basename": "Qwen2.5-Coder"})) is None
