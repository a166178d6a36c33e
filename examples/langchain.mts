// Streams a chat with LangChain (@langchain/openai and @langchain/core).
// Needs OPENAI_BASE_URL (ends in /v1) and OPENAI_API_KEY; an argument names the model.
import { ChatOpenAI } from "@langchain/openai";

const chat = new ChatOpenAI({ model: process.argv[2] ?? "tiny-demo", temperature: 0 });

for await (const chunk of await chat.stream("Who are you?")) process.stdout.write(chunk.text);
console.log();
