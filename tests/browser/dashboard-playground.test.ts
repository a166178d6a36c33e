// In a real browser: a person talks with models in the playground, and sees what it took and what went wrong.
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { Locator } from "playwright-core";
import { pagesOf } from "../support/browser-world.ts";
import { leaveBrowser, openVisitor, phone, type Visitor } from "../support/chromium.ts";
import { type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { until } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";
import { chatScript, chunk, json, type Script, usage } from "../support/scripted-upstream.ts";

let world: DashboardWorld;
/** How both model servers answer unless a test says otherwise. */
const plain = chatScript(["Water", " turns", " the wheel."]);

beforeAll(async () => {
  const deployments = "[{ upstream: north, model: quill-base }]";
  const capabilities = "{ chat: false, completion: true, embeddings: false }";
  world = await openDashboardWorld({
    yaml: `  - { id: quill-base, capabilities: ${capabilities}, deployments: ${deployments} }\n`,
  });
});

beforeEach(() => {
  answers(plain);
  world.models.north.requests.length = 0;
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

function answers(script: Script): void {
  world.models.north.script(script);
}

async function ada(path = "/playground?model=aurora-large"): Promise<Visitor> {
  const visitor = await openVisitor({ at: pagesOf(world.server) });
  await world.signIn(visitor.context);
  await visitor.go(path);
  return visitor;
}

const message = ({ page }: Visitor): Locator => page.getByRole("textbox", { name: /^Message to / });
const conversation = ({ page }: Visitor): Locator => page.getByRole("region", { name: "Conversation" });

async function ask(visitor: Visitor, question: string): Promise<void> {
  await message(visitor).fill(question);
  await message(visitor).press("Enter");
}

/** Messages of the request that reached the model server last. */
function lastRequest() {
  return world.models.north.requests.at(-1)?.body ?? {};
}

/** Sends the pieces one by one, the next whenever `next` is called. */
function stepped(...pieces: string[]) {
  const steps = pieces.map(() => Promise.withResolvers<void>());
  let done = 0;
  const script: Script = async (_request, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.flushHeaders();
    for (const [index, piece] of pieces.entries()) {
      await steps[index]?.promise;
      res.write(piece);
    }
    res.end();
  };
  return { script, next: () => steps[done++]?.resolve() };
}

const end = [chunk({}, "stop"), chunk({}, null, { choices: [], usage }), "data: [DONE]\n\n"].join("");

test("compares up to four models on one prompt, each with its own answers, and keeps them in the address", async () => {
  await using visitor = await ada();
  const { page } = visitor;
  const compare = page.getByRole("button", { name: "Compare" });
  // The caret is in the message field as soon as the page is there.
  await message(visitor).waitFor();
  await page.keyboard.type("How does");
  for (let count = 2; count <= 4; count++) {
    await compare.click();
    await page.getByRole("textbox", { name: `Message to ${count} models` }).waitFor();
  }
  expect(await compare.isDisabled()).toBe(true);
  expect(new URL(page.url()).searchParams.getAll("with")).toHaveLength(3);
  await message(visitor).press("End");
  await page.keyboard.type(" it turn?");
  await message(visitor).press("Enter");
  for (const model of ["aurora-large", "aurora-mini", "ember-code"]) {
    const column = page.getByRole("region", { name: model, exact: true });
    await column.getByText("How does it turn?", { exact: true }).waitFor();
    await column.getByRole("button", { name: "Copy the answer" }).waitFor();
    await column.getByText(model, { exact: true }).last().waitFor();
  }
  await look(visitor, "playground-compare");
  await page.getByRole("button", { name: "Remove ember-code from the comparison" }).click();
  await page.getByRole("region", { name: "ember-code", exact: true }).waitFor({ state: "detached" });
  expect(new URL(page.url()).searchParams.getAll("with")).not.toContain("ember-code");
});

test("sends attached images and texts with the message, and shows their names in the conversation", async () => {
  await using visitor = await ada();
  const { page } = visitor;
  await message(visitor).waitFor();
  const files = [
    { name: "dot.png", mimeType: "image/png", buffer: Buffer.from("not quite a picture") },
    { name: "notes.md", mimeType: "text/markdown", buffer: Buffer.from("# Water\n") },
    { name: "extra.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF") },
  ];
  await page.locator("input[type=file]").setInputFiles(files);
  await visitor.press("Remove extra.pdf");
  await look(visitor, "playground-files");
  await ask(visitor, "What is in these?");
  await conversation(visitor).getByText("turns the wheel").waitFor();
  await conversation(visitor).getByText("dot.png").waitFor();
  const image = `data:image/png;base64,${files[0]?.buffer.toString("base64")}`;
  expect(lastRequest()["messages"]).toEqual([
    {
      role: "user",
      content: [
        { type: "image_url", image_url: { url: image } },
        { type: "text", text: "notes.md:\n# Water\n" },
        { type: "text", text: "What is in these?" },
      ],
    },
  ]);
  expect(await page.getByRole("button", { name: /^Remove / }).count()).toBe(0);
  expect(visitor.trouble).toEqual([]);
});

test("runs only the chosen tools for the model, sends it the results, and shows each call", async () => {
  await using visitor = await ada("/");
  const { page } = visitor;
  const tool = { name: "weather_now", description: "The weather of a place.", inputSchema: { type: "object" } };
  const given: unknown[] = [];
  await page.route("**/mcp?tools=all", async (route) => {
    const { id, method, params } = route.request().postDataJSON() as { id: number; method: string; params: unknown };
    const results: Record<string, unknown> = {
      "server/discover": { capabilities: { tools: {} } },
      "tools/list": { tools: [tool] },
      "tools/call": { content: [{ type: "text", text: "12 degrees" }] },
    };
    if (method === "tools/call") given.push((params as { arguments: unknown }).arguments);
    await route.fulfill({ json: { jsonrpc: "2.0", id, result: results[method] } });
  });
  const call = { id: "call_1", type: "function", function: { name: tool.name, arguments: '{"place":"Bern"}' } };
  const other = { id: "call_2", type: "function", function: { name: "weather_delete", arguments: "{}" } };
  const pieces = [call, other].map((one, index) => chunk({ tool_calls: [{ index, ...one }] }));
  const calling = [...pieces, chunk({}, "tool_calls"), "data: [DONE]\n\n"].join("");
  answers((request, res) => {
    const { messages } = request.body as { messages: { role: string }[] };
    if (messages.at(-1)?.role === "tool") return plain(request, res);
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.end(calling);
  });
  await visitor.go("/playground?model=aurora-large");
  await page.getByRole("combobox", { name: "Tools" }).click();
  await page.getByRole("option", { name: tool.name }).click();
  await ask(visitor, "How warm is it?");
  await conversation(visitor).getByText("turns the wheel").waitFor();
  await conversation(visitor).getByText(`Called ${tool.name}`).click();
  await conversation(visitor).getByText("12 degrees").waitFor();
  expect(given).toEqual([{ place: "Bern" }]);
  expect(lastRequest()).toMatchObject({
    tools: [{ type: "function", function: { name: tool.name, parameters: tool.inputSchema } }],
    messages: [
      { role: "user" },
      { role: "assistant", tool_calls: [call, other] },
      { role: "tool", tool_call_id: "call_1", content: "12 degrees" },
      { role: "tool", tool_call_id: "call_2", content: "Error: the user did not choose this tool." },
    ],
  });
});

test("shows an answer's figures and log link, and includes it in the next question", async () => {
  await using visitor = await ada();
  await ask(visitor, "What turns\nthe wheel?");
  await conversation(visitor).getByText("Water turns the wheel.").waitFor();
  const facts = conversation(visitor);
  await facts.getByText("Finished").waitFor();
  for (const fact of ["7 tokens in", "2 out", /^first token in \d/, /in total$/, "$0.000038"]) {
    expect(await facts.getByText(fact, { exact: true }).count(), String(fact)).toBe(1);
  }
  const href = await facts.getByRole("link", { name: /^Request req_/ }).getAttribute("href");
  expect(href).toMatch(/^\/requests\/req_[-0-9a-f]+$/);
  await ask(visitor, "And why?");
  await facts.getByText("Finished").nth(1).waitFor();
  expect(lastRequest()["messages"]).toEqual([
    { role: "user", content: "What turns\nthe wheel?" },
    { role: "assistant", content: "Water turns the wheel." },
    { role: "user", content: "And why?" },
  ]);
  expect(visitor.trouble).toEqual([]);
});

test("sends only settings that were changed", async () => {
  await using visitor = await ada();
  await ask(visitor, "One");
  await conversation(visitor).getByText("Finished").waitFor();
  expect(Object.keys(lastRequest()).toSorted()).toEqual(["messages", "model", "stream", "stream_options"]);
  await visitor.fill({ "System prompt": "Be brief.", Temperature: "0.3", "Max tokens": "64", Seed: "7" });
  await visitor.page.getByRole("combobox", { name: "Stop sequences" }).fill("\\n");
  await visitor.page.getByRole("combobox", { name: "Stop sequences" }).press("Enter");
  await visitor.press("Clear");
  await ask(visitor, "Two");
  await conversation(visitor).getByText("Finished").waitFor();
  expect(lastRequest()).toMatchObject({ temperature: 0.3, max_tokens: 64, seed: 7, stop: ["\n"] });
  expect(lastRequest()["messages"]).toEqual([
    { role: "system", content: "Be brief." },
    { role: "user", content: "Two" },
  ]);
  await visitor.press("Code");
  const dialog = visitor.page.getByRole("dialog", { name: "Copy as code" });
  await dialog.getByText('"temperature": 0.3', { exact: false }).waitFor();
  expect(await dialog.getByRole("tab").allTextContents()).toEqual(["curl", "Python", "TypeScript", "Command line"]);
  expect(visitor.trouble).toEqual([]);
});

test("shows an answer requested with store among the chats", async () => {
  await using visitor = await ada();
  await visitor.page.getByLabel("Save to Chats").check({ force: true });
  await ask(visitor, "Keep this one");
  await conversation(visitor).getByText("Finished").waitFor();
  const kept = await until(async () => {
    const { data } = await world.browser.ask("/v1/chat/completions");
    return (data as { id: string }[]).length === 1;
  }, "the chat is stored");
  expect(kept).toBe(true);
});

test("renders an answer as text with separate code, and announces it once it is whole", async () => {
  const html = '<img src="x" onerror="alert(1)"> & <b>bold</b>';
  const { script, next } = stepped(
    chunk({ content: `${html}\n\n\`\`\`ts\nconst a = 1;` }),
    chunk({ content: "\n```" }) + end,
  );
  answers(script);
  await using visitor = await ada();
  const heard = visitor.page.locator(".transcript [aria-live=polite]");
  await ask(visitor, "Write code");
  next();
  await conversation(visitor).getByText(html, { exact: true }).waitFor();
  await conversation(visitor).getByRole("region", { name: "ts in the answer" }).getByText("const a = 1;").waitFor();
  expect(await heard.textContent()).toBe("");
  next();
  await conversation(visitor).getByText("Finished").waitFor();
  expect(await heard.textContent()).toStartWith("aurora-large answered: <img");
  expect(await conversation(visitor).locator("img, b").count()).toBe(0);
  expect(await conversation(visitor).getByRole("button", { name: "Copy the code" }).count()).toBe(1);
  expect(visitor.trouble).toEqual([]);
});

test("stops an answer, keeps the received part, and stops the model server", async () => {
  const { script, next } = stepped(chunk({ content: "So far" }), chunk({ content: " never" }));
  answers(script);
  await using visitor = await ada();
  await ask(visitor, "Tell me all");
  next();
  await conversation(visitor).getByText("So far").waitFor();
  await visitor.press("Stop");
  await conversation(visitor).getByText("Stopped by you").waitFor();
  expect(await conversation(visitor).getByText("So far").count()).toBe(1);
  await until(() => world.models.north.requests.at(-1)?.abandoned, "the model server was told");
  expect(await message(visitor).evaluate((field) => field === document.activeElement)).toBe(true);
  expect(visitor.trouble).toEqual([]);
});

test("repeats or edits a question, and drops what followed it", async () => {
  await using visitor = await ada();
  await ask(visitor, "First");
  await conversation(visitor).getByText("Finished").waitFor();
  await ask(visitor, "Second");
  await conversation(visitor).getByText("Finished").nth(1).waitFor();
  answers(chatScript(["Another answer."]));
  await visitor.press("Answer again");
  await conversation(visitor).getByText("Another answer.").waitFor();
  expect(lastRequest()["messages"]).toHaveLength(3);
  await conversation(visitor).getByText("Finished").nth(1).waitFor();
  await visitor.page.getByRole("button", { name: "Edit and send again" }).first().click();
  await visitor.page.getByLabel("Edit the message").fill("First, better");
  await visitor.press("Send again");
  await until(() => JSON.stringify(lastRequest()).includes("better"), "it was asked");
  expect(lastRequest()["messages"]).toEqual([{ role: "user", content: "First, better" }]);
  await conversation(visitor).getByText("Second").waitFor({ state: "detached" });
  expect(visitor.trouble).toEqual([]);
});

test("explains a broken stream, keeps the received part, and offers a retry", async () => {
  const { script, next } = stepped(
    chunk({ content: "Half of it" }),
    'data: {"error":{"message":"Out of memory."}}\n\n',
  );
  answers(script);
  await using visitor = await ada();
  await ask(visitor, "Go on");
  next();
  await conversation(visitor).getByText("Half of it").waitFor();
  next();
  const alert = conversation(visitor).getByRole("alert", { name: "The answer was cut off" });
  await alert.waitFor();
  expect(await conversation(visitor).getByText("Half of it").count()).toBe(1);
  answers(plain);
  await visitor.press("Try again");
  await conversation(visitor).getByText("Water turns the wheel.").waitFor();
  expect(await alert.count()).toBe(0);
  expect(visitor.trouble).toEqual([]);
});

test("shows the wait for a busy model, counts down, and retries on request", async () => {
  answers((_request, res) => json(res, 429, { error: { message: "Slow down." } }, { "retry-after": "30" }));
  await using visitor = await ada();
  await visitor.page.clock.install();
  await ask(visitor, "Hurry");
  const said = conversation(visitor).getByText(/^Try again in \d+ s\.$/);
  await said.waitFor();
  const before = Number.parseInt((await said.textContent())?.replace(/\D/g, "") ?? "", 10);
  expect(before).toBeWithin(2, 61);
  await visitor.page.clock.fastForward(2_000);
  await conversation(visitor)
    .getByText(`Try again in ${before - 2} s.`)
    .waitFor();
  await visitor.page.clock.fastForward(60_000);
  await conversation(visitor).getByText("You can try again now.").waitFor();
  answers(plain);
  await visitor.press("Try again");
  await conversation(visitor).getByText("Water turns the wheel.").waitFor();
  expect(visitor.trouble.join()).toMatch(/^(429|503) for \S+\/v1\/chat\/completions,console error: [^,]*$/);
});

test("keeps the conversation and model while another page is visited", async () => {
  await using visitor = await ada("/playground");
  await visitor.page.getByRole("combobox", { name: "Model" }).click();
  await visitor.page.getByRole("option", { name: "ember-code" }).click();
  await visitor.page.waitForURL("**/playground?model=ember-code");
  answers(plain);
  world.models.south.script(plain);
  await ask(visitor, "Stay");
  await conversation(visitor).getByText("Finished").waitFor();
  await message(visitor).fill("A draft");
  await visitor.page.getByRole("link", { name: "Models" }).click();
  await visitor.page.getByRole("heading", { name: "Models", level: 1 }).waitFor();
  await visitor.page.getByRole("link", { name: "Playground" }).click();
  await conversation(visitor).getByText("Water turns the wheel.").waitFor();
  expect(await message(visitor).inputValue()).toBe("A draft");
  expect(await message(visitor).getAttribute("aria-label")).toBe("Message to ember-code");
  await visitor.press("Clear");
  await visitor.press("Restore the cleared conversation");
  await conversation(visitor).getByText("Water turns the wheel.").waitFor();
  expect(visitor.trouble).toEqual([]);
});

test("replaces the chosen model with typed text that finds another", async () => {
  await using visitor = await ada("/playground");
  const picker = visitor.page.getByRole("combobox", { name: "Model" });
  await picker.click();
  await visitor.page.keyboard.type("ember");
  expect(await picker.inputValue()).toBe("ember");
  await visitor.page.getByRole("option", { name: "ember-code" }).click();
  await visitor.page.waitForURL("**/playground?model=ember-code");
  expect(visitor.trouble).toEqual([]);
});

test("keeps the conversation after a reload, renders its formatting, and clears it", async () => {
  answers(chatScript(["**Water** turns it:\n\n- day\n- night\n\n| a | b |\n|---|---|\n| 1 | 2 |"]));
  await using visitor = await ada();
  await ask(visitor, "What turns the wheel?");
  await conversation(visitor).getByText("Finished").waitFor();
  await visitor.page.reload();
  await conversation(visitor).getByText("What turns the wheel?").waitFor();
  expect(await conversation(visitor).locator("strong").textContent()).toBe("Water");
  expect(await conversation(visitor).locator("li").allTextContents()).toEqual(["day", "night"]);
  expect(await conversation(visitor).locator("td").allTextContents()).toEqual(["1", "2"]);
  await visitor.press("Clear");
  await visitor.page.reload();
  await visitor.page.getByText("Ask aurora-large a question").waitFor();
  expect(visitor.trouble).toEqual([]);
});

test("follows a long answer only while its end is in view", async () => {
  const line = `${"A line of a long answer. ".repeat(20)}\n\n`;
  const { script, next } = stepped(
    ...[
      chunk({ content: line.repeat(20) }),
      chunk({ content: line.repeat(5) }),
      chunk({ content: `${line}last` }) + end,
    ],
  );
  answers(script);
  await using visitor = await ada();
  await ask(visitor, "Tell a long one");
  const behind = () => conversation(visitor).evaluate((it) => it.scrollHeight - it.scrollTop - it.clientHeight);
  next();
  await until(
    async () => await conversation(visitor).evaluate((it) => it.scrollHeight > 2 * it.clientHeight),
    "it is long",
  );
  expect(await behind()).toBeLessThan(2);
  await conversation(visitor).evaluate((it) => it.scrollTo(0, 100));
  await visitor.page.getByRole("button", { name: "Go to the end" }).waitFor();
  next();
  next();
  await conversation(visitor).getByText("last", { exact: false }).last().waitFor();
  expect(await conversation(visitor).evaluate((it) => it.scrollTop)).toBe(100);
  await visitor.press("Go to the end");
  await until(async () => (await behind()) < 2, "the end is in view");
  expect(visitor.trouble).toEqual([]);
});

test("tries an embeddings model by the similarity of texts", async () => {
  const vectors: Record<string, number[]> = { river: [1, 0], stream: [0.8, 0.6], invoice: [0, 1] };
  answers(({ body }, res) => {
    const input = body["input"] as string[];
    const data = input.map((text, index) => ({ object: "embedding", index, embedding: vectors[text] ?? [0, 0] }));
    json(res, 200, { object: "list", data, model: "m", usage: { prompt_tokens: 3, total_tokens: 3 } });
  });
  await using visitor = await ada("/playground?model=atlas-embed");
  await visitor.fill({ Texts: "river\ninvoice\nstream\n" });
  await visitor.press("Compare");
  await visitor.page.getByRole("heading", { name: "Similarity to “river”" }).waitFor();
  expect(await visitor.page.locator("tbody tr").allTextContents()).toEqual(["stream0.800", "invoice0.000"]);
  await look(visitor, "playground-embeddings");
});

test("continues a text with a model that does not chat, without other context", async () => {
  const piece = (text: string, finish_reason: string | null) => {
    return `data: ${JSON.stringify({ object: "text_completion", choices: [{ index: 0, text, finish_reason }] })}\n\n`;
  };
  answers((_request, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.end(`${piece(" there was", null)}${piece(" a mill.", "stop")}data: [DONE]\n\n`);
  });
  await using visitor = await ada("/playground?model=quill-base");
  await visitor.press("Once upon a time");
  await conversation(visitor).getByText("there was a mill.").waitFor();
  expect(lastRequest()["prompt"]).toBe("Once upon a time");
  await conversation(visitor).getByText("Finished").waitFor();
  await visitor.page.getByRole("textbox", { name: "Text for quill-base to continue" }).fill("Again");
  await visitor.press("Send");
  await until(() => lastRequest()["prompt"] === "Again", "it was asked");
  expect(await visitor.page.getByRole("button", { name: "Code" }).count()).toBe(0);
  expect(visitor.trouble).toEqual([]);
});

test("distinguishes a removed model from no model", async () => {
  await using visitor = await ada("/playground?model=gone-7b");
  await visitor.page.getByRole("heading", { name: "Model gone-7b not found" }).waitFor();
  expect(await visitor.page.getByRole("combobox", { name: "Model" }).inputValue()).toBe("");
  await look(visitor, "playground-gone");
});

test("keeps the playground accessible for sight, screen reader and keyboard", async () => {
  await using visitor = await ada();
  await visitor.page.getByRole("heading", { name: "Ask aurora-large a question" }).waitFor();
  await look(visitor, "playground-empty");
  answers(
    chatScript([
      "Some text.\n\n```py\nprint('a line of code that is much longer than a phone is wide, as code often is')\n```\n",
    ]),
  );
  await visitor.press("Explain in three sentences what a headrace is.");
  await conversation(visitor).getByText("Finished").waitFor();
  await look(visitor, "playground-answer");
  await visitor.press("Edit and send again");
  await look(visitor, "playground-edit");
  await visitor.press("Cancel");
  await visitor.press("Code");
  await visitor.page.getByRole("dialog").getByRole("tab").first().waitFor();
  await look(visitor, "playground-code");
  await visitor.page.keyboard.press("Escape");
  await visitor.page.getByRole("dialog").waitFor({ state: "detached" });
  await visitor.page.setViewportSize(phone);
  await visitor.press("Settings");
  await visitor.page.getByLabel("Temperature").fill("1.2");
  await look(visitor, "playground-settings");
});

test("keeps conversation and message when the session ends, and continues after sign-in", async () => {
  await using visitor = await ada();
  const { page, context } = visitor;
  await ask(visitor, "What is a headrace?");
  await conversation(visitor).getByText("Water turns the wheel.").waitFor();
  await context.clearCookies();
  await ask(visitor, "A long and precious message");
  const over = page.getByRole("dialog", { name: "Your session has ended" });
  await over.waitFor();
  await world.signIn(context);
  await over.getByRole("button", { name: "I am signed in" }).click();
  await over.waitFor({ state: "detached" });
  await conversation(visitor).getByText("What is a headrace?").waitFor();
  await conversation(visitor).getByText("Water turns the wheel.").nth(1).waitFor();
  expect(JSON.stringify(lastRequest())).toContain("A long and precious message");
});
