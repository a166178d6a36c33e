// OpenAI's SDK as an agent over Responses: it edits a file, and goes on after each way in which a model can fail.
import OpenAI from "openai";
import type { ResponseInputItem } from "openai/resources/responses/responses";
import { describeAgent } from "../../support/agents/agent-contract.ts";
import { type AgentSdk, fileTask, fileTools, runAgent } from "../../support/agents/agent-loop.ts";
import { type AgentWorld, agentModel } from "../../support/agents/agent-world.ts";
import { openaiClient } from "../../support/clients.ts";

type Item = ResponseInputItem;

/** The SDK is used with a stream, its own retries, and all items of the conversation each time. */
function agentOf(world: AgentWorld): AgentSdk<Item> {
  const client = openaiClient(world.server, { maxRetries: 2 });
  const tools = fileTools.map((tool) => ({ type: "function" as const, strict: true, ...tool }));
  return {
    user: (text) => ({ role: "user", content: text }),
    async ask(conversation) {
      const input = [...conversation];
      const stream = client.responses.stream({ model: agentModel, input, tools, store: false });
      const { output, output_text: text, status, error } = await stream.finalResponse();
      // The SDK leaves it to its caller to look.
      if (status === "failed") throw new FailedResponse(error?.message, { cause: error?.code });
      const calls = output.flatMap((item) => (item.type === "function_call" ? [item] : []));
      return {
        items: output as Item[],
        text,
        calls: calls.map((call) => ({ id: call.call_id, name: call.name, arguments: JSON.parse(call.arguments) })),
      };
    },
    results: (results) =>
      results.map(({ call, output }) => ({ type: "function_call_output", call_id: call.id, output })),
    isOverflow: (error) => codeOf(error) === "context_length_exceeded",
    async compact(conversation) {
      const compacted = await client.responses.compact({ model: agentModel as never, input: [...conversation] });
      return compacted.output as Item[];
    },
  };
}

class FailedResponse extends Error {}

function codeOf(error: unknown): unknown {
  if (error instanceof FailedResponse) return error.cause;
  return error instanceof OpenAI.APIError ? error.code : undefined;
}

describeAgent({ task: fileTask, run: (world) => runAgent(agentOf(world), world) });
