// What the `openai` package raises, and what every error of Headrace must be in its eyes.
import { expect } from "bun:test";
import type { APIError } from "openai";
import { type TestServer, until } from "./headrace.ts";

type ErrorClass<Raised> = new (...args: never[]) => Raised;

/** What `call` raises; fails where it raises nothing or something of another class. */
export async function raised<Raised extends APIError>(
  call: () => PromiseLike<unknown>,
  of: ErrorClass<Raised>,
): Promise<Raised> {
  const thrown = await call().then(
    (value) => new Error(`nothing was raised, but answered: ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
  if (thrown instanceof of) return thrown;
  throw thrown;
}

/** The body has what every error has, and the request id leads to the log line, which has the gateway's own code. */
export async function expectBody(
  server: TestServer,
  error: APIError,
  status: number,
  code: string,
  type: string,
  logged = code,
): Promise<void> {
  expect({ status: error.status, code: error.code, type: error.type }).toEqual({ status, code, type });
  const body = error.error as Record<string, unknown>;
  expect(Object.keys(body).filter((name) => name !== "param")).toEqual(["message", "type", "code"]);
  expect(Object.values(body)).toEqual(Object.values(body).map(() => expect.any(String)));
  expect(error.requestID).toMatch(/^req_/);
  const line = await until(
    () => server.logged("request").find((entry) => entry["id"] === error.requestID),
    "the log line",
  );
  expect(line).toMatchObject({ status, code: logged });
}

/** An error event has no status of its own: the answer had begun with 200. */
export async function expectStreamFailure(server: TestServer, error: APIError, code: string): Promise<void> {
  expect({ status: error.status, code: error.code, type: error.type }).toEqual({
    status: undefined,
    code,
    type: "api_error",
  });
  expect(error.requestID).toMatch(/^req_/);
  const line = await until(
    () => server.logged("request").find((entry) => entry["id"] === error.requestID),
    "the log line",
  );
  expect(line).toMatchObject({ outcome: "failed", code });
}
