"""An agent on OpenAI's SDK for Python, or on LangChain over Responses, with two tools for files of the folder that it runs in.

Usage: python agent.py openai|langchain BASE_URL MODEL PROMPT, with the key in OPENAI_API_KEY. It says what the model says last.
"""

import json
import sys

kind, base_url, model, prompt = sys.argv[1:]
most_turns = 20
text = {"type": "string"}


def tool(name, description, *members):
    parameters = {"type": "object", "properties": {m: text for m in members}, "required": list(members)}
    parameters["additionalProperties"] = False
    return {"type": "function", "name": name, "description": description, "parameters": parameters, "strict": True}


tools = [
    tool("read_file", "Reads a file of the folder.", "path"),
    tool("edit_file", "Replaces a text in a file of the folder.", "path", "old", "new"),
]


def run_tool(name, arguments):
    with open(arguments["path"]) as file:
        content = file.read()
    if name == "read_file":
        return content
    with open(arguments["path"], "w") as file:
        file.write(content.replace(arguments["old"], arguments["new"]))
    return "Done."


class Overflow(Exception):
    pass


class Broken(Exception):
    pass


class OpenAIAgent:
    def __init__(self):
        from openai import OpenAI

        self.client = OpenAI(base_url=base_url, max_retries=2)
        self.input = [{"role": "user", "content": prompt}]

    def ask(self):
        asked = {"model": model, "input": self.input, "tools": tools, "store": False}
        with self.client.responses.stream(**asked) as stream:
            response = None
            for event in stream:
                if event.type in ("response.completed", "response.incomplete", "response.failed"):
                    response = event.response
        if response is None:
            raise Broken("The stream ended early.")
        if response.error:
            raise (Overflow if "context_length" in response.error.code else Broken)(response.error.message)
        items = [item.model_dump(exclude={"parsed_arguments"}, exclude_none=True) for item in response.output]
        for item in items:
            for part in item.get("content", []):
                part.pop("parsed", None)
        self.input += items
        calls = [item for item in response.output if item.type == "function_call"]
        for call in calls:
            output = run_tool(call.name, json.loads(call.arguments))
            self.input.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
        return None if calls else response.output_text

    def compact(self):
        compacted = self.client.responses.compact(model=model, input=self.input)
        self.input = [item.model_dump(exclude_none=True) for item in compacted.output]


class LangChainAgent:
    def __init__(self):
        from langchain_openai import ChatOpenAI

        settings = {"base_url": base_url, "model": model, "max_retries": 2, "store": False}
        self.model = ChatOpenAI(use_responses_api=True, output_version="responses/v1", **settings)
        self.messages = [("user", prompt)]

    def ask(self):
        from langchain_core.messages import ToolMessage

        answer = None
        try:
            for chunk in self.model.bind_tools(tools).stream(self.messages):
                answer = chunk if answer is None else answer + chunk
        except Exception as error:
            raise (Overflow if "context length" in str(error) else Broken)(str(error))
        if answer is None or answer.response_metadata.get("status") == "failed":
            raise Broken("The stream ended early.")
        self.messages.append(answer)
        for call in answer.tool_calls:
            output = run_tool(call["name"], call["args"])
            self.messages.append(ToolMessage(content=output, tool_call_id=call["id"]))
        return None if answer.tool_calls else answer.text

    def compact(self):
        summary = self.model.invoke([*self.messages, ("user", "Summarize the conversation.")])
        self.messages = [("user", str(summary.text))]


agent = {"openai": OpenAIAgent, "langchain": LangChainAgent}[kind]()
again = True
for _ in range(most_turns):
    try:
        said = agent.ask()
    except Overflow:
        agent.compact()
        continue
    except Exception as error:
        if not again:
            raise
        print(f"Again: {error}", file=sys.stderr)
        again = False
        continue
    again = True
    if said is not None:
        print(said)
        sys.exit(0)
sys.exit(f"Not done after {most_turns} turns.")
