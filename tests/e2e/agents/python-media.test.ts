// OpenAI's SDK for Python: its methods for sound and images work as they are.
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeProgramHome, python } from "../../support/agents/agent-program.ts";
import { startHeadrace } from "../../support/headrace.ts";
import { ownModel, sound, startMediaServer, wavOf } from "../../support/media-server.ts";

const script = join(import.meta.dir, "..", "..", "programs", "media.py");

test("serves speech, transcriptions, translations, images, edits and variations to the Python SDK, whole, as bytes and as events", async () => {
  await using media = await startMediaServer();
  const models = `models: [{ id: media, deployments: [{ upstream: up, model: ${ownModel} }] }]`;
  await using server = await startHeadrace({ yaml: `upstreams: [{ name: up, url: "${media.url}" }]\n${models}\n` });
  await using home = makeProgramHome();
  const wav = join(home.home, "a.wav");
  writeFileSync(wav, wavOf(2));
  const command = [python, script, `${server.url}/v1`, "media", wav];
  const { code, stdout, stderr } = await home.run(command, home.home, { OPENAI_API_KEY: server.key });
  if (code !== 0) throw new Error(`It ended with ${code}:\n${stdout}\n${stderr}`);
  const delta = "transcript.text.delta";
  expect(JSON.parse(stdout)).toEqual({
    speech: ["audio/mpeg", sound.length],
    transcription: "The mill runs by itself.",
    stream: [delta, delta, delta, "transcript.text.done"],
    text: "The mill runs by itself.\n",
    verbose: 8.47,
    translation: "The mill runs by itself.",
    image: 2,
    events: ["image_generation.partial_image", "image_generation.completed"],
    edit: 1,
    variation: 1,
    error: [400, "invalid_request", "file"],
  });
  const asked = media.requests.map(({ form, body }) => form?.get("model") ?? body["model"]);
  expect(new Set(asked)).toEqual(new Set([ownModel]));
});
