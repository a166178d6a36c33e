// Converts model names in the events of a realtime session. The client sees public ids. The model server gets its own
// ids.
import { fieldError, type GatewayError } from "../../base/errors.ts";
import { shown } from "../../base/text/shown.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";
import { overridingFault } from "../../domain/names/field-names.ts";
import type { Principal } from "../../domain/principal.ts";
import { usableModel } from "../../policy/authorize.ts";
import type { InferenceDeps } from "../call.ts";
import { isJson, type Json } from "./reported-usage.ts";

export interface SessionModels {
  /** The model name that the client requested. */
  name: string;
  /** The model of the session, and the deployment that serves it. */
  model: Model;
  deployment: Deployment;
}

/** Paths of the transcription settings within a session, in the current API and in the preview API. */
const transcriptionPaths = [["audio", "input", "transcription"], ["input_audio_transcription"]] as const;

export interface SentEvent {
  readonly event: Json;
  /** The transcription model, if the event names one. */
  readonly transcriber: Model | undefined;
  /** The reason why transcription settings were removed from the event. Undefined if none were removed. */
  readonly leftOut: GatewayError | undefined;
}

/** Reports whether the event may name a model. Such an event must be passed to `forServer`. */
export function namesModel(event: Json): boolean {
  return event["type"] === "response.create" || "session" in event || "model" in event || "response" in event;
}

/**
 * Returns the event with the model server's own model ids. If the principal may not use the transcription model, only
 * the transcription settings are removed, because SDKs set them by default. `principal` is required for session events.
 * Throws `invalid_request` if the event names a model other than the session's.
 */
export function forServer(
  event: Json,
  models: SessionModels,
  principal: Principal | undefined,
  { catalog }: Pick<InferenceDeps, "catalog">,
): SentEvent {
  // vLLM expects `model` at the top level of the event, so it is replaced there too.
  let sent = withOwnModel(event, [], models);
  for (const part of ["session", "response"]) {
    const settings = sent[part];
    if (settings === undefined || settings === null) continue;
    if (!isJson(settings)) throw fieldError(part, "must be an object.");
    sent = { ...sent, [part]: withOwnModel(settings, [part], models) };
  }
  let transcriber: Model | undefined;
  let leftOut: GatewayError | undefined;
  for (const inSession of transcriptionPaths) {
    const path = ["session", ...inSession];
    const said = at(sent, path)?.["model"];
    if (said === undefined || said === null) continue;
    const found = typeof said === "string" ? (catalog.get(said) ?? catalog.find(said)) : undefined;
    const usable = found && principal && usableModel(principal, found);
    const there = usable?.deployments.find(({ engine }) => engine === models.deployment.engine);
    if (there) {
      transcriber = usable;
      sent = withAt(sent, [...path, "model"], there.model);
    } else {
      leftOut = noTranscription([...path, "model"].join("."), said, models);
      sent = withoutAt(sent, path);
    }
  }
  return { event: sent, transcriber, leftOut };
}

function noTranscription(field: string, said: unknown, { name }: SessionModels): GatewayError {
  return fieldError(
    field,
    `\`${shown(String(said))}\` is no model of this key on the server of \`${shown(name)}\`, so what is heard is not transcribed. The rest of the event was sent. GET /v1/models lists models.`,
  );
}

/**
 * Returns a part of an event. If the part names a model, the name is replaced by the model server's own id. `path` is
 * the path of the part. Throws `invalid_request`.
 */
function withOwnModel(part: Json, path: readonly string[], { name, model, deployment }: SessionModels): Json {
  for (const member of Object.keys(part)) {
    const fault = overridingFault(member);
    if (fault !== undefined) throw fieldError([...path, member].join("."), fault);
  }
  const asked = part["model"];
  if (asked === undefined || asked === null) return part;
  if (asked === name || asked === model.id) return { ...part, model: deployment.model };
  const field = [...path, "model"].join(".");
  throw fieldError(field, `must be \`${shown(name)}\`: a session keeps the model that it was opened with.`);
}

/**
 * Returns the session settings for the client. The secret is removed, because it would let the client bypass the
 * gateway.
 */
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

function withoutAt(value: Json, [name = "", ...rest]: readonly string[]): Json {
  const { [name]: inner, ...others } = value;
  return rest.length === 0 || !isJson(inner) ? others : { ...value, [name]: withoutAt(inner, rest) };
}
