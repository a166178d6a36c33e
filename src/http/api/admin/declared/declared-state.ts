// Compares documents with the objects of the installation, and makes the objects what the documents say.
import { createHash } from "node:crypto";
import { GatewayError, invalidRequest } from "../../../../base/errors.ts";
import { shown } from "../../../../base/text/shown.ts";
import type { AuditLog } from "../../../../domain/audit.ts";
import {
  type DeclaredKind,
  type DeclaredMark,
  type DeclaredMarks,
  declaredKinds,
} from "../../../../domain/declared.ts";
import type { Principal } from "../../../../domain/principal.ts";
import { aboutInstallation, actingOf, auditEvent, type Origin } from "../../../../policy/records/audit.ts";
import { Turns } from "../../../../policy/turns.ts";
import {
  type ApplyRequest,
  type DeclaredChange,
  type DocumentWire,
  type GivenDocument,
  type Planned,
  specSchemas,
  specShapes,
} from "../../../../wire/declared.ts";
import { strictly } from "../../../content/strict-body.ts";
import { type Applying, type Current, type Kind, type KindDeps, kindsOf, type Settings } from "./kinds.ts";

export interface DeclaredDeps extends KindDeps {
  declaredMarks: DeclaredMarks;
  audit: Pick<AuditLog, "append">;
}

/** Changes of objects of one kind that run at the same time. Adding an upstream may wait for the upstream. */
const sideBySide = 8;

/** Name of the account that the installation began with. Its id differs in each installation. */
const firstAccount = "first";

/** The objects and marks of a kind. */
interface Known {
  objects: ReadonlyMap<string, Current>;
  marks: ReadonlyMap<string, DeclaredMark>;
  /** Names by the object's id. */
  names: ReadonlyMap<string, string>;
}

interface Step extends Planned {
  mark: DeclaredMark | undefined;
  id: string;
  run(how: Applying): Promise<void>;
}

type Caller = Pick<Applying, "principal" | "origin">;

/** Returns all objects as documents. */
export async function documentsOf(deps: DeclaredDeps, caller: Caller): Promise<DocumentWire[]> {
  const documents: DocumentWire[] = [];
  const how: Applying = { ...caller, planned: () => [] };
  for (const kind of declaredKinds) {
    const known = await knownOf(deps, kind);
    const { objects, names } = known;
    for (const [id, { settings, secrets = {} }] of objects) {
      const name = names.get(id) ?? id;
      const defaults = defaultsUnlessShadowed(deps, kind, name, settings, how);
      if (!defaults) continue;
      const spec = withoutDefaults(settings, defaults);
      const managed_by = managerOf(known, name);
      documents.push({ object: "document", kind, name, managed_by, spec, secrets: Object.keys(secrets) });
    }
  }
  return documents;
}

/** Plans the application of the documents, and applies them unless only the plan is wanted. */
export async function applyDocuments(deps: DeclaredDeps, caller: Caller, request: ApplyRequest) {
  const { managed_by: managedBy, documents, prune = false, plan = false, expect } = request;
  const how: Applying = {
    ...caller,
    planned: (kind) => documents.filter((one) => one.kind === kind).map(({ name }) => name),
  };
  const steps = await planned(deps, how, { managedBy, documents, prune });
  const data = steps.map(({ kind, name, action, changes }): Planned => ({ kind, name, action, changes }));
  const digest = createHash("sha256").update(JSON.stringify(data)).digest("hex").slice(0, 32);
  if (expect !== undefined && expect !== digest) {
    throw invalidRequest("expect: the installation changed since this plan was made. Plan again.");
  }
  if (!plan) await run(deps, how, managedBy, steps);
  return { object: "apply" as const, managed_by: managedBy, digest, data };
}

/** Makes the object of one document what it says. Only an object without a manager may be given without one. */
export async function applyDocument(
  deps: DeclaredDeps,
  caller: Caller,
  document: GivenDocument,
  managedBy: string | undefined,
): Promise<DocumentWire> {
  const how: Applying = { ...caller, planned: () => [] };
  const steps = await planned(deps, how, { managedBy: managedBy ?? null, documents: [document], prune: false });
  await run(deps, how, managedBy ?? null, steps);
  return requireDocument(deps, caller, document);
}

export async function requireDocument(
  deps: DeclaredDeps,
  caller: Caller,
  { kind, name }: Pick<GivenDocument, "kind" | "name">,
): Promise<DocumentWire> {
  const found = (await documentsOf(deps, caller)).find((one) => one.kind === kind && one.name === name);
  if (found) return found;
  throw new GatewayError("not_found", `There is no ${kind} ${shown(name)}. GET /v1/admin/documents lists the objects.`);
}

/** Deletes the object, or suspends an account. */
export async function removeDocument(
  deps: DeclaredDeps,
  caller: Caller,
  document: Pick<GivenDocument, "kind" | "name">,
  managedBy: string | undefined,
): Promise<void> {
  const { kind, name, managed_by: manager } = await requireDocument(deps, caller, document);
  if (manager !== null && manager !== managedBy) throw foreign(kind, name, manager);
  const known = await knownOf(deps, kind);
  const step = removal(deps, kind, name, known);
  await run(deps, { ...caller, planned: () => [] }, managedBy ?? null, [step]);
}

interface Wanted {
  managedBy: string | null;
  documents: readonly GivenDocument[];
  prune: boolean;
}

async function planned(deps: DeclaredDeps, how: Applying, { managedBy, documents, prune }: Wanted): Promise<Step[]> {
  const steps: Step[] = [];
  const removals: Step[] = [];
  for (const kind of declaredKinds) {
    const known = await knownOf(deps, kind);
    const wanted = new Set<string>();
    for (const [index, document] of documents.entries()) {
      if (document.kind !== kind) continue;
      try {
        if (wanted.has(document.name)) throw invalidRequest(`name: another document has this kind and name.`);
        wanted.add(document.name);
        steps.push(stepOf(deps, how, document, managedBy, known));
      } catch (error) {
        throw placed(error, index, kind);
      }
    }
    if (!prune) continue;
    for (const name of known.marks.keys()) {
      if (managerOf(known, name) === managedBy && !wanted.has(name)) removals.unshift(removal(deps, kind, name, known));
    }
  }
  return [...steps, ...removals];
}

function stepOf(
  deps: DeclaredDeps,
  how: Applying,
  { kind, name, spec: given }: GivenDocument,
  managedBy: string | null,
  known: Known,
): Step {
  const { objects, marks, names } = known;
  const { spec } = strictly(specSchemas[kind], { spec: given });
  const it = kindOf(deps, kind);
  const mark = marks.get(name);
  const id =
    mark?.targetId ?? (it.idPrefix === undefined ? name : ([...names].find(([, one]) => one === name)?.[0] ?? name));
  const current = objects.get(id);
  const otherName = mark ? undefined : names.get(id);
  if (otherName !== undefined && otherName !== name)
    throw invalidRequest(`name: the object is named ${otherName} here.`);
  const manager = managerOf(known, name);
  if (manager !== null && manager !== managedBy) throw foreign(kind, name, manager);
  const isOwned = managedBy === null || manager === managedBy;
  const kept = current && isOwned ? keptOf(it, spec, current) : {};
  const settings = { ...it.complete(name, spec, how), ...kept };
  const secrets = secretsOf(it, spec);
  const defaults = defaultsOf(deps, kind, name, settings, how);
  const changes = [
    ...changesOf(current ? withoutDefaults(current.settings, defaults) : {}, withoutDefaults(settings, defaults)),
    ...secretChanges(current?.secrets ?? {}, secrets),
  ];
  const action = !current ? "create" : !isOwned ? "adopt" : changes.length > 0 ? "update" : "none";
  const newId = !current && !mark && it.idPrefix !== undefined ? `${it.idPrefix}${Bun.randomUUIDv7()}` : id;
  return {
    ...{ kind, name, action, changes, mark, id: newId },
    async run() {
      if (!current) await it.create(newId, spec, how);
      else if (changes.length > 0) await it.change(newId, settings, spec, how);
    },
  };
}

function removal(deps: DeclaredDeps, kind: DeclaredKind, name: string, { objects, marks }: Known): Step {
  const it = kindOf(deps, kind);
  const mark = marks.get(name);
  const id = mark?.targetId ?? name;
  const current = objects.get(id);
  return {
    ...{ kind, name, action: it.isSuspended ? "suspend" : "delete", changes: [], mark, id },
    run: async (how) => void (current && (await it.remove(id, how))),
  };
}

/**
 * Runs the steps, the objects of one kind side by side. The mark is stored before its object is created and removed
 * after it is deleted, so that a run that was cut off can be repeated.
 */
async function run(deps: DeclaredDeps, how: Applying, managedBy: string | null, steps: readonly Step[]): Promise<void> {
  const { principal, origin } = how;
  const by = actingOf(principal, origin.nowSeconds, null);
  const done: Record<string, string[]> = {};
  const turns = new Turns(sideBySide, Number.POSITIVE_INFINITY);
  const store = async (mark: DeclaredMark, before: DeclaredMark | undefined) => {
    if (!(await deps.declaredMarks.put(mark, before, by))) throw overtaken(mark.name);
  };
  const runStep = async (step: Step) => {
    const { kind, name, action, mark, id } = step;
    const changedAt = origin.nowSeconds;
    if (action === "create" || action === "adopt") {
      await store({ kind, name, targetId: id, managedBy: managedBy ?? mark?.managedBy ?? null, changedAt }, mark);
    }
    await step.run(how);
    if (action === "delete" && mark) await deps.declaredMarks.remove(mark, by);
    if (action === "suspend" && mark) await store({ ...mark, managedBy: null, changedAt }, mark);
    if (action !== "none") done[action] = [...(done[action] ?? []), `${kind}/${name}`];
  };
  try {
    for (const group of Map.groupBy(steps, (step) => `${step.kind} ${isRemoval(step)}`).values()) {
      const results = await Promise.allSettled(group.map((step) => turns.run(() => runStep(step))));
      for (const result of results) if (result.status === "rejected") throw result.reason;
    }
  } finally {
    if (Object.keys(done).length > 0) await record(deps, principal, origin, managedBy, done);
  }
}

function isRemoval({ action }: Step): boolean {
  return action === "delete" || action === "suspend";
}

const maxRecorded = 200;

async function record(
  { audit }: DeclaredDeps,
  principal: Principal,
  origin: Origin,
  managedBy: string | null,
  done: Readonly<Record<string, readonly string[]>>,
): Promise<void> {
  const detail = Object.fromEntries(
    Object.entries(done).map(([action, names]) => [
      action,
      names.length > maxRecorded ? [...names.slice(0, maxRecorded), `and ${names.length - maxRecorded} more`] : names,
    ]),
  );
  await audit.append([auditEvent("documents.applied", principal, origin, aboutInstallation(managedBy, detail))]);
}

async function knownOf(deps: DeclaredDeps, kind: DeclaredKind): Promise<Known> {
  const it = kindOf(deps, kind);
  // Marks are read first: a mark without an object is an unfinished creation, an object without its mark would be new.
  const stored = (await deps.declaredMarks.list()).filter((mark) => mark.kind === kind);
  const objects = new Map((await it.read()).map((one) => [one.id, one]));
  const marks = new Map(stored.map((mark) => [mark.name, mark]));
  const names = new Map(stored.map(({ targetId, name }) => [targetId, name]));
  const [first] = objects.keys();
  if (kind === "account" && first !== undefined && !names.has(first) && !marks.has(firstAccount)) {
    names.set(first, firstAccount);
  }
  return { objects, marks, names };
}

// The compiler cannot relate a kind to the type of its documents, which `strictly` has checked.
function kindOf(deps: DeclaredDeps, kind: DeclaredKind): Kind<Settings> {
  return kindsOf(deps)[kind] as unknown as Kind<Settings>;
}

/**
 * Returns the manager of the object. An object that is younger than its mark was made by hand, after the marked object
 * was deleted by hand.
 */
function managerOf({ marks, objects }: Known, name: string): string | null {
  const mark = marks.get(name);
  if (!mark) return null;
  const { createdAt = 0 } = objects.get(mark.targetId) ?? {};
  return createdAt > mark.changedAt ? null : mark.managedBy;
}

function keptOf({ kept = [] }: Kind<Settings>, spec: Settings, { settings }: Current): Settings {
  return Object.fromEntries(
    kept.filter((member) => spec[member] === undefined).map((member) => [member, settings[member]]),
  );
}

/** Returns the settings of an object of which only the required members are given. */
function defaultsOf(deps: DeclaredDeps, kind: DeclaredKind, name: string, settings: Settings, how: Applying): Settings {
  const it = kindOf(deps, kind);
  const required = Object.fromEntries(it.required.map((member) => [member, settings[member]]));
  const defaults = { ...it.complete(name, required, how) };
  for (const member of it.required) delete defaults[member];
  return defaults;
}

/** Returns undefined if the object has no effect, because headrace.yaml has its name. */
function defaultsUnlessShadowed(...about: Parameters<typeof defaultsOf>): Settings | undefined {
  try {
    return defaultsOf(...about);
  } catch (error) {
    if (error instanceof GatewayError && error.code === "permission_denied") return undefined;
    throw error;
  }
}

function withoutDefaults(settings: Settings, defaults: Settings): Record<string, unknown> {
  const own = Object.entries(settings).filter(
    ([member, value]) => !(member in defaults && Bun.deepEquals(value, defaults[member])),
  );
  return Object.fromEntries(own);
}

function secretsOf({ secrets = [] }: Kind<Settings>, spec: Settings): Settings {
  const given = secrets.map((member) => [member, spec[member]] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== undefined && value !== null));
}

function secretChanges(before: Settings, after: Settings): DeclaredChange[] {
  const members = new Set([...Object.keys(before), ...Object.keys(after)]);
  const changed = [...members].filter((member) => !Bun.deepEquals(before[member], after[member]));
  return changed.map((field) => ({ field, secret: true }));
}

/** Returns the differences by the path of the member. Lists are compared as wholes. */
function changesOf(before: Settings, after: Settings, prefix = ""): DeclaredChange[] {
  const members = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...members].flatMap((member): DeclaredChange[] => {
    const [was, becomes] = [before[member], after[member]];
    const field = `${prefix}${member}`;
    if (Bun.deepEquals(was, becomes)) return [];
    if (isMapping(was) && isMapping(becomes)) return changesOf(was, becomes, `${field}.`);
    return [
      {
        ...{ field, secret: false },
        ...(was === undefined ? {} : { before: was }),
        ...(becomes === undefined ? {} : { after: becomes }),
      },
    ];
  });
}

function isMapping(value: unknown): value is Settings {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the error with the path of the document before the path of the wrong member. */
function placed(error: unknown, index: number, kind: DeclaredKind): unknown {
  if (!(error instanceof GatewayError)) return error;
  const { code, message } = error;
  if (code !== "invalid_request" && code !== "permission_denied") return error;
  const [, member = ""] = /^([a-z_]+)(?:[.[][^ ]*)?: /.exec(message) ?? [];
  const isOwn = ["spec", "name", "id"].includes(member);
  const place = member in specShapes[kind].shape ? ".spec." : isOwn ? "." : ": ";
  const said = member === "id" ? message.replace(/^id/, "name") : message;
  return new GatewayError(code, `documents[${index}]${place}${said}`, { cause: error });
}

function foreign(kind: DeclaredKind, name: string, manager: string): GatewayError {
  return invalidRequest(
    `name: the ${kind} ${name} is managed by ${manager}. Change it there, or take it out there first.`,
  );
}

function overtaken(name: string): GatewayError {
  return new GatewayError(
    "service_unavailable",
    `Another request changes ${shown(name)} at the moment. Retry in 1 s.`,
    {
      retryAfterSeconds: 1,
    },
  );
}
