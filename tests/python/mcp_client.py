"""Asks `handlescope mcp` with the official client of the protocol, which checks every answer against the schema
of its tool, and prints what it heard as JSON.

python mcp_client.py HANDLESCOPE ROOT
"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters, stdio_client

CALLS = {
    "why": {},
    "diff": {},
    "groups": {"by": ["process", "type"]},
    "objects": {"stacks": True},
    "allocations": {"by": ["kind", "createstack"], "stacks": True},
    "stack": {"id": 18},
    "sql": {"query": "SELECT process, pid, origin FROM leaks"},
    "schema": {},
    "stats": {},
}


def member(value, *names):
    """A member under the name that this version of the client gives it."""
    return next(getattr(value, name) for name in names if hasattr(value, name))


async def talk(program, root):
    server = StdioServerParameters(command=program, args=["mcp", "--root", root])
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        heard = {"server": member(await session.initialize(), "server_info", "serverInfo").name}
        heard["tools"] = [tool.name for tool in (await session.list_tools()).tools]

        async def call(tool, arguments):
            result = await session.call_tool(tool, arguments)
            if member(result, "is_error", "isError"):
                return result.content[0].text
            return member(result, "structured_content", "structuredContent")

        heard["outside"] = await call("load", {"paths": ["../leaky.etl"]})
        await call("load", {"paths": ["leaky.etl"], "symbols": ["symbols"]})
        answers = {tool: await call(tool, arguments) for tool, arguments in CALLS.items() if tool != "allocations"}
        await call("load", {"paths": ["memory.etl"]})
        answers["allocations"] = await call("allocations", CALLS["allocations"])
        await call("load", {"paths": ["leaky.etl"], "symbols": ["symbols"]})
        heard["totals"] = {tool: answer["total"] for tool, answer in answers.items()}
        heard["function"] = answers["why"]["document"]["suspects"][0]["function"]
        page, heard["objects_in_pages"] = {"next": {"arguments": {"top": 30}}}, 0
        while True:
            page = await call("objects", page["next"]["arguments"])
            heard["objects_in_pages"] += len(page["document"]["objects"])
            if "next" not in page:
                break
        pages = {str(page.uri) for page in (await session.list_resources()).resources}
        assert "handlescope://help/filters" in pages, pages
        help_page = await session.read_resource("handlescope://help/ObjectRef")
        heard["help"] = help_page.contents[0].text
        print(json.dumps(heard))


asyncio.run(talk(*sys.argv[1:3]))
