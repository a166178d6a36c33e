// Models by name in the events of a realtime session: public ids towards the client, and the server's own towards the server.
import { fieldError } from "../../base/errors.ts";
import { shown } from "../../base/text/shown.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";
import type { Principal } from "../../domain/principal.ts";
import { usableModel } from "../../policy/authorize.ts";
import type { InferenceDeps } from "../call.ts";
import { isJson, type Json } from "./told-usage.ts";

export interface SessionModels {
  /** By which the client asked. */
  name: string;
  /** The model that it opened, and where it runs. */
  model: Model;
  deployment: Deployment;
}

/** Where a session says what makes texts of what is heard: now, and in the preview. */
const transcriptionPaths = [["audio", "input", "transcription"], ["input_audio_transcription"]] as const;

/**
 * The session as its server is told it, and the model that makes texts of what is heard, where it names one. Throws
 * `invalid_request` for a model that is not the session's, or that the principal may not use there.
 */
export function forServer(
  session: Json,
  models: SessionModels,
  principal: Principal,
  { catalog }: Pick<InferenceDeps, "catalog">,
): { session: Json; transcriber: Model | undefined } {
  const { name, deployment } = models;
  let changed = withOwnModel(session, "session.model", models);
  let transcriber: Model | undefined;
  for (const path of transcriptionPaths) {
    const said = at(changed, path)?.["model"];
    if (typeof said !== "string") continue;
    const found = catalog.get(said) ?? catalog.find(said);
    transcriber = found && usableModel(principal, found);
    const there = transcriber?.deployments.find(({ engine }) => engine === deployment.engine);
    if (!there) {
      throw fieldError(
        `session.${path.join(".")}.model`,
        `must be a model of this key on the server of \`${shown(name)}\` (got \`${shown(said)}\`). GET /v1/models lists them.`,
      );
    }
    changed = withAt(changed, [...path, "model"], there.model);
  }
  return { session: changed, transcriber };
}

/** `member`, which may name the model, with its server's own name for it. Throws `invalid_request` for another model. */
export function withOwnModel(member: Json, field: string, { name, model, deployment }: SessionModels): Json {
  const asked = member["model"];
  if (asked === undefined || asked === null) return member;
  if (asked === name || asked === model.id) return { ...member, model: deployment.model };
  throw fieldError(field, `must be \`${shown(name)}\`: a session keeps the model that it was opened with.`);
}

/** The session as the client is told it: without a secret by which it could go past the gateway. */
export function forClient(
  { client_secret: _, ...session }: Json,
  { name, deployment }: SessionModels,
  transcriber: Model | undefined,
): Json {
  let changed: Json = typeof session["model"] === "string" ? { ...session, model: name } : session;
  const own = transcriber?.deployments.find(({ engine }) => engine === deployment.engine)?.model;
  for (const path of transcriptionPaths) {
    if (transcriber && at(changed, path)?.["model"] === own)
      changed = withAt(changed, [...path, "model"], transcriber.id);
  }
  return changed;
}

function at(value: Json, path: readonly string[]): Json | undefined {
  let found: unknown = value;
  for (const name of path) found = isJson(found) ? found[name] : undefined;
  return isJson(found) ? found : undefined;
}

function withAt(value: Json, [name = "", ...rest]: readonly string[], text: string): Json {
  const inner = value[name];
  return { ...value, [name]: rest.length === 0 ? text : withAt(isJson(inner) ? inner : {}, rest, text) };
}
