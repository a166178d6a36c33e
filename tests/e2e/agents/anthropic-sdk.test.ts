// Anthropic's SDK as an agent over Messages, the newest and the last before 1.0, which sends its key and version otherwise: it edits a file, and goes on after each way in which a model can fail.
import { describe } from "bun:test";
import Anthropic, { type ClientOptions } from "@anthropic-ai/sdk";
import AnthropicBefore from "anthropic-sdk-0";
import { describeAgent } from "../../support/agents/agent-contract.ts";
import { type AgentSdk, fileTask, fileTools, runAgent } from "../../support/agents/agent-loop.ts";
import { type AgentWorld, agentModel } from "../../support/agents/agent-world.ts";

type Item = Anthropic.MessageParam;

/** Both are used by what they have in common. */
const clients: Record<string, (options: ClientOptions) => Anthropic> = {
  "1.x": (options) => new Anthropic(options),
  "the last 0.x": ({ baseURL, maxRetries, apiKey }) =>
    new AnthropicBefore({ baseURL, maxRetries, apiKey: String(apiKey) } as never) as never,
};

function agentOf({ server }: AgentWorld, make: (options: ClientOptions) => Anthropic): AgentSdk<Item> {
  const client = make({ baseURL: server.url, apiKey: server.key, maxRetries: 2 });
  const tools = fileTools.map(({ name, description, parameters }) => ({
    ...{ name, description, input_schema: parameters as never },
  }));
  const asked = { model: agentModel, max_tokens: 1024 };
  return {
    user: (text) => ({ role: "user", content: text }),
    async ask(conversation) {
      const messages = [...conversation];
      const { content } = await client.messages.stream({ ...asked, tools, messages }).finalMessage();
      const calls = content.flatMap((block) => (block.type === "tool_use" ? [block] : []));
      return {
        items: [{ role: "assistant", content }],
        text: content.map((block) => (block.type === "text" ? block.text : "")).join(""),
        calls: calls.map(({ id, name, input }) => ({ id, name, arguments: input as Record<string, unknown> })),
      };
    },
    results: (results) => [
      {
        role: "user",
        content: results.map(({ call, output }) => ({ type: "tool_result", tool_use_id: call.id, content: output })),
      },
    ],
    isOverflow: (error) => error instanceof Error && /prompt is too long/.test(error.message),
    async compact(conversation) {
      const question = { role: "user" as const, content: "Summarize the conversation." };
      const { content } = await client.messages.create({ ...asked, messages: [...conversation, question] });
      const summary = content.map((block) => (block.type === "text" ? block.text : "")).join("");
      return [{ role: "user", content: summary }];
    },
  };
}

describe.each(Object.entries(clients))("the SDK, %s", (_, make) => {
  describeAgent({ task: fileTask, run: (world) => runAgent(agentOf(world, make), world) });
});
