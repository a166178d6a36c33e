// The AI SDK as an agent, by its packages for OpenAI (Responses) and Anthropic (Messages): it runs the loop of turns itself.
import { describe } from "bun:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { jsonSchema, type ModelMessage, stepCountIs, streamText, tool } from "ai";
import { describeAgent } from "../../support/agents/agent-contract.ts";
import { fileTask, fileTools, runTool } from "../../support/agents/agent-loop.ts";
import { type AgentWorld, agentModel, thePrompt } from "../../support/agents/agent-world.ts";

const maxRounds = 6;

/** Makes the model of each package. */
const providers = {
  "@ai-sdk/openai": ({ server }: AgentWorld) =>
    createOpenAI({ baseURL: `${server.url}/v1`, apiKey: server.key })(agentModel),
  "@ai-sdk/anthropic": ({ server }: AgentWorld) =>
    createAnthropic({ baseURL: `${server.url}/v1`, apiKey: server.key })(agentModel),
};

/** With `store`, the package names what was said before by its items' ids, which the gateway keeps. */
describe.each([
  ["@ai-sdk/openai", false],
  ["@ai-sdk/openai", true],
  ["@ai-sdk/anthropic", false],
] as const)("the AI SDK with %s, store: %p", (name, store) => {
  const modelOf = providers[name];
  describeAgent({
    task: fileTask,
    async run(world) {
      const model = modelOf(world);
      const tools = Object.fromEntries(
        fileTools.map(({ name, description, parameters }) => [
          name,
          tool({
            description,
            inputSchema: jsonSchema<Record<string, unknown>>(parameters as never),
            execute: (input) => runTool({ name, arguments: input }, world),
          }),
        ]),
      );
      let messages: ModelMessage[] = [{ role: "user", content: thePrompt }];
      for (let round = 0; round < maxRounds; round++) {
        const done: ModelMessage[] = [];
        let failed: unknown;
        const result = streamText({
          ...{ model, tools, messages, stopWhen: stepCountIs(10), maxRetries: 2, maxOutputTokens: 1024 },
          providerOptions: { openai: { store } },
          onStepFinish: ({ response }) => void done.push(...response.messages),
          onError: ({ error }) => {
            failed = error;
          },
        });
        await result.consumeStream();
        if (failed === undefined) return result.text;
        messages = [...messages, ...done];
        if (!/context length|prompt is too long|ran out of/i.test(String((failed as Error).message ?? failed)))
          continue;
        const short = streamText({
          model,
          maxOutputTokens: 1024,
          messages: [...messages, { role: "user", content: "Summarize the conversation." }],
          providerOptions: { openai: { store } },
        });
        messages = [{ role: "user", content: await short.text }];
      }
      throw new Error(`Not done after ${maxRounds} rounds.`);
    },
  });
});
