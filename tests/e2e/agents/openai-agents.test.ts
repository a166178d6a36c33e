// The Agents SDK of OpenAI over Responses: it runs the loop of turns itself, with whole items of the conversation.
import { type AgentInputItem, Agent as OpenAIAgent, OpenAIResponsesModel, Runner, tool } from "@openai/agents";
import { describeAgent } from "../../support/agents/agent-contract.ts";
import { fileTask, fileTools, runTool } from "../../support/agents/agent-loop.ts";
import { type AgentWorld, agentModel, thePrompt } from "../../support/agents/agent-world.ts";
import { openaiClient } from "../../support/clients.ts";

const maxRounds = 6;

async function run(world: AgentWorld): Promise<string> {
  const client = openaiClient(world.server, { maxRetries: 2 });
  const model = new OpenAIResponsesModel(client as never, agentModel);
  const tools = fileTools.map(({ name, description, parameters }) =>
    tool({
      ...{ name, description, parameters: parameters as never, strict: true },
      execute: (input) => runTool({ name, arguments: input as Record<string, unknown> }, world),
    }),
  );
  const agent = new OpenAIAgent({ name: "Editor", model, tools, modelSettings: { store: false } });
  // Its traces would go to OpenAI, whatever the base URL is.
  const runner = new Runner({ tracingDisabled: true });
  let input: AgentInputItem[] = [{ role: "user", content: thePrompt }];
  for (let round = 0; round < maxRounds; round++) {
    const result = await runner.run(agent, input, { stream: true });
    let received = "";
    try {
      // The SDK says no more of a response that failed than that there was none.
      for await (const event of result)
        if (event.type === "raw_model_stream_event") received += JSON.stringify(event.data);
      await result.completed;
      if (result.error) throw result.error;
      if (result.finalOutput !== undefined) return String(result.finalOutput);
      input = result.history;
    } catch (error) {
      input = result.history;
      if (!`${received}${String(error)}`.includes("context_length_exceeded")) continue;
      const question: AgentInputItem = { role: "user", content: "Summarize the conversation." };
      const short = await runner.run(agent, [...input, question]);
      input = [{ role: "user", content: String(short.finalOutput) }];
    }
  }
  throw new Error(`Not done after ${maxRounds} rounds.`);
}

describeAgent({ task: fileTask, run });
