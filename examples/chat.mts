// Streams a chat and makes an embedding with the openai package.
// Needs OPENAI_BASE_URL (ends in /v1) and OPENAI_API_KEY; an argument names the model.
import OpenAI from "openai";

const model = process.argv[2] ?? "tiny-demo";
const client = new OpenAI(); // reads both variables

try {
  const stream = await client.chat.completions.create({
    model,
    messages: [{ role: "user", content: "Who are you?" }],
    temperature: 0,
    stream: true,
    stream_options: { include_usage: true },
  });
  for await (const chunk of stream) {
    process.stdout.write(chunk.choices[0]?.delta.content ?? "");
    if (chunk.usage) console.log(`\n[${chunk.usage.total_tokens} tokens]`);
  }

  const { data } = await client.embeddings.create({ model, input: "A gateway for models." });
  console.log(`[embedding of ${data[0]?.embedding.length} numbers]`);
} catch (error) {
  if (!(error instanceof OpenAI.APIError)) throw error;
  // The message names the field and what is allowed; the id finds the request in the server's log.
  console.error(`${error.message} (${error.code}, request ${error.requestID})`);
  process.exitCode = 1;
}
