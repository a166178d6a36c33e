// What must be true of the process: Bun's request limit lifted before start, no proxy between us and model servers.
import { expect, test } from "bun:test";
import { ConfigError } from "./problems.ts";
import { prepareProcess } from "./server-process.ts";

type Environment = Record<string, string | undefined>;

test.each(["65535", "1024", "4096"])("accepts a limit of %s outgoing requests", (limit) => {
  prepareProcess({ BUN_CONFIG_MAX_HTTP_REQUESTS: limit } as Environment as never);
});

test.each([undefined, "", "0", "256", "1023", "65536", "100000", "-1", "1e9", "many", "4096.5"])(
  "refuses a limit of %p outgoing requests, at which Bun would queue silently",
  (limit) => {
    const environment: Environment = limit === undefined ? {} : { BUN_CONFIG_MAX_HTTP_REQUESTS: limit };
    let thrown: unknown;
    try {
      prepareProcess(environment as never);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(ConfigError);
    const { message } = thrown as ConfigError;
    expect(message).toContain("BUN_CONFIG_MAX_HTTP_REQUESTS");
    expect(message).toContain("1024 to 65535");
    expect(message).toContain("npm start");
  },
);

test("removes every spelling of the proxy variables and nothing else", () => {
  const environment: Environment = {
    BUN_CONFIG_MAX_HTTP_REQUESTS: "65535",
    HTTP_PROXY: "http://proxy",
    http_proxy: "http://proxy",
    HTTPS_PROXY: "http://proxy",
    https_proxy: "http://proxy",
    ALL_PROXY: "http://proxy",
    all_proxy: "http://proxy",
    PATH: "/bin",
  };
  prepareProcess(environment as never);
  expect(environment).toEqual({ BUN_CONFIG_MAX_HTTP_REQUESTS: "65535", PATH: "/bin" });
});

test("sends to model servers directly after the proxy variables were removed", async () => {
  using proxy = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("PROXY") });
  using target = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("TARGET") });
  const script = `
    const { prepareProcess } = await import(${JSON.stringify(new URL("./server-process.ts", import.meta.url).pathname)});
    prepareProcess(process.env);
    console.log(await (await fetch(${JSON.stringify(target.url.href)})).text());`;
  const child = Bun.spawn([process.execPath, "-e", script], {
    env: { BUN_CONFIG_MAX_HTTP_REQUESTS: "65535", HTTP_PROXY: proxy.url.href, http_proxy: proxy.url.href },
    stdout: "pipe",
    stderr: "inherit",
  });
  expect((await new Response(child.stdout).text()).trim()).toBe("TARGET");
});
