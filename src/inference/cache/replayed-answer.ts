// Presents a cached answer as the response of an engine, so that it is sent to the client like any other answer.
import { type BodySource, bodyOf } from "../../base/bytes/body-source.ts";
import type { Engine, EngineResponse } from "../../domain/models/engine.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";
import type { KeptAnswer } from "../../domain/models/policies/answer-store.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import type { Dispatched } from "../routing/attempt.ts";

const events = { get: (name: string) => (name === "content-type" ? "text/event-stream" : null) };
const json = { get: (name: string) => (name === "content-type" ? "application/json" : null) };

/** The engine to which cached answers are attributed. No request is sent to it. */
const cache: Engine = {
  name: "cache",
  send: () => Promise.reject(new Error("What is kept is not asked for anything.")),
  models: async () => [],
  redact: (text) => text,
};
const deployment: Deployment = { engine: cache, model: "", weight: 1 };

export class ReplayedAnswer implements Dispatched {
  readonly model: Model;
  readonly deployment = deployment;
  readonly leftOut: readonly string[];
  readonly response: EngineResponse;

  constructor({ bytes, ignored }: KeptAnswer, model: Model, { stream }: Pick<DecodedRequest, "stream">) {
    this.model = model;
    this.leftOut = ignored;
    const body: BodySource = bodyOf(bytes);
    this.response = { status: 200, headers: stream ? events : json, body };
  }

  firstByte(): void {}

  answers(): void {}

  another(error: unknown): Promise<Dispatched> {
    return Promise.reject(error);
  }

  done(): void {}
}
