// Requests that wait for capacity while the configuration changes go where the model runs from then on.
import { expect, test } from "bun:test";
import { startHeadrace, until } from "../support/headrace.ts";
import { chatScript, startUpstream } from "../support/scripted-upstream.ts";

const chat = { model: "upstream-model", messages: [{ role: "user", content: "Hi" }] };

test("serves a request that waits at a replaced upstream from the new one at once", async () => {
  const gate = Promise.withResolvers<void>();
  await using full = await startUpstream(async (request, response) => {
    await gate.promise;
    await chatScript()(request, response);
  });
  await using free = await startUpstream();
  const yaml = (url: string) => `upstreams: [{ name: up, url: "${url}", max_concurrency: 1 }]\n`;
  await using server = await startHeadrace({ yaml: yaml(full.url) });
  const waiting = () =>
    server.catalog
      .list()
      .flatMap((model) => model.deployments.flatMap(({ engine }) => server.capacity.figures(engine)))
      .reduce((sum, figures) => sum + figures.waiting, 0);
  const first = server.request("/v1/chat/completions", { body: chat });
  await until(() => full.requests.length === 1, "the only place is taken");
  const second = server.request("/v1/chat/completions", { body: chat });
  await until(() => waiting() === 1, "the second waits");
  await server.reconfigure(yaml(free.url));
  expect((await second).status).toBe(200);
  expect(free.requests).toHaveLength(1);
  expect(full.requests).toHaveLength(1);
  gate.resolve();
  expect((await first).status).toBe(200);
});

test("starts waiting requests when a concurrency limit is raised", async () => {
  const gate = Promise.withResolvers<void>();
  await using upstream = await startUpstream(async (request, response) => {
    await gate.promise;
    await chatScript()(request, response);
  });
  const yaml = (bound: number) => `upstreams: [{ name: up, url: "${upstream.url}", max_concurrency: ${bound} }]\n`;
  await using server = await startHeadrace({ yaml: yaml(1) });
  const answers = [1, 2, 3].map(() => server.request("/v1/chat/completions", { body: chat }));
  await until(() => upstream.requests.length === 1, "the only place is taken");
  await server.reconfigure(yaml(4));
  await until(() => upstream.requests.length === 3, "the others follow");
  gate.resolve();
  for (const answer of answers) expect((await answer).status).toBe(200);
});
