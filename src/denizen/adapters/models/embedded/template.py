"""The chat template that the embedded model is run with.

Most models run with the template in their weights file. Qwen2.5-Coder's own template asks for `<tool_call>` tags,
but the model was not trained on them and answers with a fenced json block, which the server then leaves in the text.
The corrected template asks for what the model does. Called by `server`.
"""

from pathlib import Path

from denizen.adapters.models.embedded.gguf import GgufHeader, load_gguf_header

_FENCE = "```"

# Each fragment stands once in the template. The doubled braces in the first are a slip of the original.
_QWEN_CODER_REPLACEMENTS = (
    (
        (
            r"return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n"
            r"<tool_call>\n{{\"name\": <function-name>, \"arguments\": <args-json-object>}}\n</tool_call><|im_end|>"
        ),
        (
            r"answer with a fenced json block with function name and arguments:\n"
            rf"{_FENCE}json\n{{\"name\": <function-name>, \"arguments\": <args-json-object>}}\n{_FENCE}<|im_end|>"
        ),
    ),
    (r"""'\n<tool_call>\n{"name": "'""", rf"""'\n{_FENCE}json\n{{"name": "'"""),
    (r"'}\n</tool_call>'", rf"'}}\n{_FENCE}'"),
    (
        # Without this line the model repeats the same call for ever.
        r"'\n</tool_response>'",
        (
            r"'\n</tool_response>\nUse this result to answer my question in plain text. "
            r"Call another function only if something is still missing.'"
        ),
    ),
)


def plan_template(header: GgufHeader) -> str | None:
    """The template to run with instead of the one in the weights file; None when that one is right."""
    if header.find_text("general.basename") != "Qwen2.5-Coder":
        return None
    template = header.find_text("tokenizer.chat_template") or ""
    if any(template.count(wrong) != 1 for wrong, _ in _QWEN_CODER_REPLACEMENTS):
        return None  # another edition of the template, perhaps corrected by its author
    for wrong, right in _QWEN_CODER_REPLACEMENTS:
        template = template.replace(wrong, right)
    return template


def load_template(weights: Path) -> str | None:
    """`plan_template` for a file. Raises InvalidInput when it is not a readable GGUF file."""
    return plan_template(load_gguf_header(weights))
