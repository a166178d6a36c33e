// Streams a chat with the AI SDK (ai and @ai-sdk/openai-compatible).
// Needs OPENAI_BASE_URL (ends in /v1) and OPENAI_API_KEY; an argument names the model.
import { env } from "node:process";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";

const { OPENAI_BASE_URL: baseURL = "", OPENAI_API_KEY: apiKey = "" } = env;
const headrace = createOpenAICompatible({ name: "headrace", baseURL, apiKey });

const model = headrace(process.argv[2] ?? "tiny-demo");
const { textStream } = streamText({ model, prompt: "Who are you?", temperature: 0 });
for await (const text of textStream) process.stdout.write(text);
console.log();
