// In a real browser: batches are listed with how far each is, one is read beside the list, and cancelled.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { toFile } from "openai";
import { desktop, leaveBrowser, openVisitor, phone, type Visitor } from "../support/chromium.ts";
import { openaiClient } from "../support/clients.ts";
import { type DashboardWorld, openDashboardWorld } from "../support/dashboard-world.ts";
import { until } from "../support/headrace.ts";
import { look } from "../support/page-checks.ts";

let world: DashboardWorld;

beforeAll(async () => {
  world = await openDashboardWorld();
});

afterAll(async () => {
  leaveBrowser();
  await world[Symbol.asyncDispose]();
});

async function arrive(world: DashboardWorld, path: string, size = desktop): Promise<Visitor> {
  const visitor = await openVisitor({ at: world.server.url, size });
  await visitor.page.emulateMedia({ reducedMotion: "reduce" });
  await world.signIn(visitor.context);
  await visitor.go(path);
  return visitor;
}

/** Begins a batch as a program does; gives its id. */
async function begin(world: DashboardWorld, text: string): Promise<string> {
  const client = openaiClient(world.server);
  const file = await client.files.create({ file: await toFile(Buffer.from(text), "a"), purpose: "batch" });
  const asked = { input_file_id: file.id, endpoint: "/v1/chat/completions", completion_window: "24h" } as const;
  return (await client.batches.create(asked)).id;
}

test("lists batches with progress, and shows and cancels one beside the list", async () => {
  {
    await using visitor = await arrive(world, "/batches");
    await visitor.page.getByText("No batches yet").waitFor();
    await look(visitor, "batches-none");
  }
  const wrong = await begin(world, "{}\n");
  const body = { model: "ember-code", messages: [{ role: "user", content: "Hi" }] };
  const lines = Array.from({ length: 3 }, (_, n) => {
    return JSON.stringify({ custom_id: String(n), method: "POST", url: "/v1/chat/completions", body });
  });
  const good = await begin(world, lines.join("\n"));
  const client = openaiClient(world.server);
  await until(async () => (await client.batches.retrieve(wrong)).status === "failed", "one has failed");
  await until(async () => (await client.batches.retrieve(good)).status === "completed", "the other is completed");

  await using visitor = await arrive(world, "/batches");
  const { page } = visitor;
  await page.getByText("3 of 3").waitFor();
  await look(visitor, "batches");
  await page.getByRole("link", { name: wrong }).click();
  const drawer = page.getByRole("dialog", { name: "Batch" });
  await drawer.getByText("Line 1: custom_id: must be a text").waitFor();
  await look(visitor, "batch-failed");
  expect(await drawer.getByRole("button", { name: "Cancel the batch" }).count()).toBe(0);
  await visitor.go(`/batches/${good}`);
  await drawer.getByText("Completed").waitFor();
});

test("cancels a running batch, on a phone too", async () => {
  await using world = await openDashboardWorld({ wordMs: 60_000 });
  const body = { model: "ember-code", messages: [{ role: "user", content: "Hi" }] };
  const id = await begin(world, JSON.stringify({ custom_id: "a", method: "POST", url: "/v1/chat/completions", body }));
  await using visitor = await arrive(world, `/batches/${id}`, phone);
  const { page } = visitor;
  const drawer = page.getByRole("dialog", { name: "Batch" });
  await drawer.getByRole("button", { name: "Cancel the batch" }).click();
  await look(visitor, "batch-cancel");
  await page.getByRole("dialog", { name: "Cancel the batch?" }).getByRole("button", { name: "Cancel batch" }).click();
  const client = openaiClient(world.server);
  await until(async () => (await client.batches.retrieve(id)).status === "cancelled", "it is cancelled");
});
