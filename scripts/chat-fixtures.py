#!/usr/bin/env python3
"""Renders the conversations of tests/fixtures/chat with its templates by Python's Jinja2, set up as `transformers` sets it up
(sandboxed and immutable, blocks trimmed, loop controls, `{% generation %}`, `tojson`, `raise_exception`, `strftime_now`), into
tests/fixtures/chat/rendered.json. Needs: pip install jinja2."""

import datetime
import json
import pathlib

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

FOLDER = pathlib.Path(__file__).parent.parent / "tests/fixtures/chat"
NOW = datetime.datetime(2025, 7, 4, 15, 5, 9)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


class Generation(jinja2.ext.Extension):
    """`{% generation %}…{% endgeneration %}`: for training, what is inside is the assistant's. Rendering keeps it."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_kept"), [], [], body).set_lineno(line)

    def _kept(self, caller):
        return caller()


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(template, conversation):
    try:
        text = template.render(
            messages=conversation["messages"],
            tools=conversation.get("tools"),
            documents=None,
            add_generation_prompt=conversation["add_generation_prompt"],
            **TOKENS,
            **conversation.get("arguments", {}),
        )
        return {"text": text}
    except jinja2.exceptions.UndefinedError:
        return {"fails": True}
    except jinja2.exceptions.TemplateError as error:
        return {"raises": str(error)}
    except TypeError:
        return {"fails": True}


def main():
    conversations = json.loads((FOLDER / "conversations.json").read_text())
    rendered = {"made_by": f"jinja2 {jinja2.__version__}", "now": NOW.isoformat(), "tokens": TOKENS, "templates": {}}
    for path in sorted((FOLDER / "templates").glob("*.jinja")):
        template = environment().from_string(path.read_text())
        rendered["templates"][path.stem] = {name: render(template, c) for name, c in conversations.items()}
    (FOLDER / "rendered.json").write_text(json.dumps(rendered, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
