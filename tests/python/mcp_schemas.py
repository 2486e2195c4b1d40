"""Validates answers of `handlescope mcp` against the output schemas of its tools.

Reads {"tools": [...], "answers": [{"tool": ..., "content": ...}]} from standard input, and prints what no schema declares
as a list of texts in JSON. Schemas allow more than they declare, so that a client never refuses an answer; here every
object with declared members is closed.
"""

import json
import sys

from jsonschema import Draft202012Validator


def closed(schema):
    """The schema without members that it does not declare."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: closed(value) for name, value in schema.items()}
    if isinstance(schema.get("properties"), dict):
        inner["properties"] = {name: closed(value) for name, value in schema["properties"].items()}
        inner["additionalProperties"] = False
    return inner


def main():
    asked = json.load(sys.stdin)
    validators = {}
    for tool in asked["tools"]:
        Draft202012Validator.check_schema(tool["outputSchema"])
        validators[tool["name"]] = Draft202012Validator(closed(tool["outputSchema"]))
    problems = []
    for answer in asked["answers"]:
        for error in validators[answer["tool"]].iter_errors(answer["content"]):
            problems.append(f"{answer['tool']}: {error.json_path}: {error.message[:200]}")
    print(json.dumps(sorted(set(problems))))


main()
