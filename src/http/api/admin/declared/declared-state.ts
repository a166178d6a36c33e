// Compares declared documents with the existing objects, and changes the objects to match the documents.
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
  type AppliedDocument,
  type ApplyRequest,
  type DeclaredChange,
  type DocumentWire,
  type GivenDocument,
  type Planned,
  specSchemas,
  specShapes,
} from "../../../../wire/operations/declared.ts";
import { strictly } from "../../../content/strict-body.ts";
import { type Applying, type Current, type Kind, type KindDeps, kindsOf, type Settings } from "./kinds.ts";

export interface DeclaredDeps extends KindDeps {
  declaredMarks: DeclaredMarks;
  audit: Pick<AuditLog, "append">;
}

/**
 * Maximum objects of one kind that are changed at the same time. Adding an upstream may take long, because it waits for
 * the upstream.
 */
const sideBySide = 8;

/**
 * Name, in documents, of the account that was created with the installation. The id of this account differs in each
 * installation.
 */
const firstAccount = "first";

/** The existing objects of a kind, and the marks that connect them with documents. */
interface Known {
  /** The objects that can be used, by id. */
  objects: ReadonlyMap<string, Current>;
  ended: ReadonlySet<string>;
  marks: ReadonlyMap<string, DeclaredMark>;
  /** The external names by the id of the object. */
  names: ReadonlyMap<string, string>;
}

interface Step extends Planned {
  mark: DeclaredMark | undefined;
  id: string;
  /** The object that is removed when the new object is created. */
  old?: { id: string; remove(): Promise<void> };
  /** Resolves with the secret of a new object. */
  run(how: Applying): Promise<string | undefined>;
}

type Caller = Pick<Applying, "principal" | "origin">;

interface Context extends Applying {
  accounts: Map<string, string>;
  /** All marks, read before the objects. If a mark has no object, a run was cut off before it created the object. */
  marks: readonly DeclaredMark[];
}

/** Returns all objects as documents. */
export async function documentsOf(deps: DeclaredDeps, caller: Caller): Promise<DocumentWire[]> {
  const documents: DocumentWire[] = [];
  const how = await contextOf(deps, caller, declaredKinds);
  for (const kind of declaredKinds) {
    const known = await knownOf(deps, kind, how);
    for (const current of known.objects.values()) {
      const document = await documentOf(deps, kind, current, known, how);
      if (document) documents.push(document);
    }
  }
  return documents;
}

/**
 * Returns the document of an object. Returns undefined if headrace.yaml defines the same name, because the object then
 * has no effect.
 */
async function documentOf(
  deps: DeclaredDeps,
  kind: DeclaredKind,
  { id, settings, secrets = {} }: Current,
  known: Known,
  how: Applying,
): Promise<DocumentWire | undefined> {
  const name = known.names.get(id) ?? id;
  const defaults = await defaultsOfStored(deps, kind, name, { ...settings, ...setOnly(secrets) }, how);
  if (!defaults) return undefined;
  const spec = withoutDefaults(settings, defaults);
  const managed_by = managerOf(known, name);
  return { object: "document", kind, name, managed_by, spec, secrets: Object.keys(setOnly(secrets)) };
}

/** Plans the changes that the documents need. Makes the changes, unless the request asks only for the plan. */
export async function applyDocuments(deps: DeclaredDeps, caller: Caller, request: ApplyRequest) {
  const { managed_by: managedBy, documents, prune = false, plan = false, expect, lost = [] } = request;
  const { how, steps } = await planned(deps, caller, { managedBy, documents, prune, lost });
  const data = steps.map(({ kind, name, action, changes }): Planned => ({ kind, name, action, changes }));
  const digest = createHash("sha256").update(JSON.stringify(data)).digest("hex").slice(0, 32);
  if (expect !== undefined && expect !== digest) {
    throw invalidRequest("expect: the installation changed since this plan was made. Plan again.");
  }
  const secrets = plan ? new Map<Step, string>() : await run(deps, how, managedBy, steps);
  const shown = steps.map((step, index) => ({ ...data[index], ...secretOf(secrets, step) }) as AppliedDocument);
  return { object: "apply" as const, managed_by: managedBy, digest, data: shown };
}

/** Creates or changes the object of one document. `managedBy` may only be missing if the object has no manager. */
export async function applyDocument(
  deps: DeclaredDeps,
  caller: Caller,
  document: GivenDocument,
  managedBy: string | undefined,
): Promise<DocumentWire & { secret?: string }> {
  const wanted = { managedBy: managedBy ?? null, documents: [document], prune: false, lost: [] };
  const { how, steps } = await planned(deps, caller, wanted);
  const secrets = await run(deps, how, managedBy ?? null, steps);
  const [secret] = secrets.values();
  return { ...(await requireDocument(deps, caller, document)), ...(secret === undefined ? {} : { secret }) };
}

function secretOf(secrets: ReadonlyMap<Step, string>, step: Step): { secret?: string } {
  const secret = secrets.get(step);
  return secret === undefined ? {} : { secret };
}

/** Kinds whose documents name accounts. */
const referringKinds: ReadonlySet<DeclaredKind> = new Set(["mcp_server", "webhook", "key"]);

/** Reads the marks. Reads the accounts too, if documents of one of the kinds name accounts. */
async function contextOf(
  deps: DeclaredDeps,
  caller: Caller,
  kinds: readonly DeclaredKind[],
  documents: readonly GivenDocument[] = [],
): Promise<Context> {
  const how: Context = {
    ...caller,
    planned: (kind) => documents.filter((one) => one.kind === kind).map(({ name }) => name),
    accounts: new Map(),
    marks: await deps.declaredMarks.list(),
  };
  if (!kinds.some((kind) => referringKinds.has(kind))) return how;
  const { objects, names } = await knownOf(deps, "account", how);
  for (const id of objects.keys()) how.accounts.set(names.get(id) ?? id, id);
  return how;
}

export async function requireDocument(
  deps: DeclaredDeps,
  caller: Caller,
  { kind, name }: Pick<GivenDocument, "kind" | "name">,
): Promise<DocumentWire> {
  const how = await contextOf(deps, caller, [kind]);
  const known = await knownOf(deps, kind, how, [name]);
  const current = known.objects.get(idOf(known, name));
  const found = current && (await documentOf(deps, kind, current, known, how));
  if (found?.name === name) return found;
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
  const how = await contextOf(deps, caller, [kind]);
  const step = removal(deps, kind, name, await knownOf(deps, kind, how, [name]));
  await run(deps, how, managedBy ?? null, [step]);
}

interface Wanted {
  managedBy: string | null;
  documents: readonly GivenDocument[];
  prune: boolean;
  /** Objects whose secret the caller has lost. They are replaced by new objects. */
  lost: readonly Pick<GivenDocument, "kind" | "name">[];
}

async function planned(
  deps: DeclaredDeps,
  caller: Caller,
  { managedBy, documents, prune, lost }: Wanted,
): Promise<{ how: Context; steps: Step[] }> {
  const steps: Step[] = [];
  const removals: Step[] = [];
  const kinds = declaredKinds.filter((kind) => prune || documents.some((one) => one.kind === kind));
  const how = await contextOf(deps, caller, kinds, documents);
  for (const kind of kinds) {
    const known = await knownOf(deps, kind, how, prune ? undefined : how.planned(kind));
    const wanted = new Set<string>();
    for (const [index, document] of documents.entries()) {
      if (document.kind !== kind) continue;
      try {
        if (wanted.has(document.name)) throw invalidRequest(`name: another document has this kind and name.`);
        wanted.add(document.name);
        const isLost = lost.some((one) => one.kind === kind && one.name === document.name);
        const step = await stepOf(deps, how, document, managedBy, known, isLost);
        if (kind === "account") how.accounts.set(document.name, step.id);
        steps.push(step);
      } catch (error) {
        throw placed(error, index, kind);
      }
    }
    if (!prune) continue;
    for (const name of known.marks.keys()) {
      if (managerOf(known, name) === managedBy && !wanted.has(name)) removals.unshift(removal(deps, kind, name, known));
    }
  }
  return { how, steps: [...steps, ...removals] };
}

async function stepOf(
  deps: DeclaredDeps,
  how: Applying,
  { kind, name, spec: given }: GivenDocument,
  managedBy: string | null,
  known: Known,
  isLost: boolean,
): Promise<Step> {
  const { objects, ended, marks, names } = known;
  const { spec } = strictly(specSchemas[kind], { spec: given });
  const it = kindOf(deps, kind);
  const mark = marks.get(name);
  const id = idOf(known, name);
  const current = objects.get(id);
  const otherName = mark ? undefined : names.get(id);
  if (otherName !== undefined && otherName !== name)
    throw invalidRequest(`name: the object is named ${otherName} here.`);
  const manager = managerOf(known, name);
  if (manager !== null && manager !== managedBy) throw foreign(kind, name, manager);
  const isOwned = managedBy === null || manager === managedBy;
  const kept = current && isOwned ? keptOf(it, spec, current) : {};
  const settings = { ...(await it.complete(name, spec, how)), ...kept };
  const secrets = secretsOf(it, spec);
  const defaults = await defaultsOf(deps, kind, name, { ...settings, ...secrets }, how);
  const changes = [
    ...changesOf(current ? withoutDefaults(current.settings, defaults) : {}, withoutDefaults(settings, defaults)),
    ...secretChanges(setOnly(current?.secrets ?? {}), secrets),
  ];
  const isReplaced = current !== undefined && isLost && it.hasSecret === true;
  if (isReplaced && current.isUsed) {
    throw invalidRequest(
      `name: the ${kind} ${name} is in use, but its secret is not where the document says. Put it there, or revoke ${id} first.`,
    );
  }
  const action = !current
    ? "create"
    : isReplaced
      ? "replace"
      : !isOwned
        ? "adopt"
        : changes.length > 0
          ? "update"
          : "none";
  const isNew = isReplaced || ended.has(id) || !(current || mark);
  const newId = isNew && it.idPrefix !== undefined ? `${it.idPrefix}${Bun.randomUUIDv7()}` : id;
  return {
    ...{ kind, name, action, changes, mark, id: newId },
    ...(isReplaced ? { old: { id, remove: () => it.remove(id, how) } } : {}),
    async run() {
      if (isReplaced || !current) return it.create(newId, spec, how);
      if (changes.length > 0) await it.change(newId, settings, spec, how);
      return undefined;
    },
  };
}

/** Returns the id of the object with this external name. If no object has the name, the name is taken as the id. */
function idOf({ marks, names }: Known, name: string): string {
  return marks.get(name)?.targetId ?? [...names].find(([, one]) => one === name)?.[0] ?? name;
}

function removal(deps: DeclaredDeps, kind: DeclaredKind, name: string, known: Known): Step {
  const it = kindOf(deps, kind);
  const mark = known.marks.get(name);
  const id = idOf(known, name);
  const current = known.objects.get(id);
  const { suspension } = it;
  const settings = Object.entries(current?.settings ?? {}).filter(([member]) => member in (suspension ?? {}));
  const changes = suspension && current ? changesOf(Object.fromEntries(settings), suspension) : [];
  return {
    ...{ kind, name, action: suspension ? "suspend" : "delete", changes, mark, id },
    async run(how) {
      if (current) await it.remove(id, how);
      return undefined;
    },
  };
}

/**
 * Runs the steps. Steps for objects of one kind run concurrently. Each step first stores the mark, which fails if
 * another request changed the mark since the plan. So no step changes or deletes an object that another manager has
 * adopted. The mark is removed only after its object is deleted, so that an interrupted run can be repeated. If an
 * object is replaced, its mark refers to the old object until that is deleted, so the object is never without a mark.
 */
async function run(
  deps: DeclaredDeps,
  how: Applying,
  managedBy: string | null,
  steps: readonly Step[],
): Promise<ReadonlyMap<Step, string>> {
  const secrets = new Map<Step, string>();
  const { principal, origin } = how;
  const by = actingOf(principal, origin.nowSeconds, null);
  const done: Record<string, string[]> = {};
  const turns = new Turns(sideBySide, Number.POSITIVE_INFINITY);
  const store = async (mark: DeclaredMark, before: DeclaredMark | undefined) => {
    if (!(await deps.declaredMarks.put(mark, before, by))) throw overtaken(mark.name);
    return mark;
  };
  const runStep = async (step: Step) => {
    const { kind, name, action, mark, id, old } = step;
    if (action === "none") return;
    const changed = { kind, name, managedBy, changedAt: origin.nowSeconds };
    let claimed = await store({ ...changed, targetId: old?.id ?? id }, mark);
    if (old) {
      await old.remove();
      claimed = await store({ ...changed, targetId: id }, claimed);
    }
    const secret = await step.run(how);
    if (secret !== undefined) secrets.set(step, secret);
    if (action === "delete") await deps.declaredMarks.remove(claimed, by);
    if (action === "suspend") await store({ ...claimed, managedBy: null }, claimed);
    done[action] = [...(done[action] ?? []), `${kind}/${name}`];
  };
  try {
    for (const group of Map.groupBy(steps, (step) => `${step.kind} ${isRemoval(step)}`).values()) {
      const results = await Promise.allSettled(group.map((step) => turns.run(() => runStep(step))));
      for (const result of results) if (result.status === "rejected") throw result.reason;
    }
  } finally {
    if (Object.keys(done).length > 0) await record(deps, principal, origin, managedBy, done);
  }
  return secrets;
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

/**
 * Reads the objects of a kind. `wanted` are the external names of the needed objects. If `wanted` is undefined, all
 * objects are read.
 */
async function knownOf(
  deps: DeclaredDeps,
  kind: DeclaredKind,
  { origin, accounts, marks: allMarks }: Pick<Context, "origin" | "accounts" | "marks">,
  wanted?: readonly string[],
): Promise<Known> {
  const it = kindOf(deps, kind);
  const stored = allMarks.filter((mark) => mark.kind === kind);
  const needed = wanted && new Set(wanted);
  const accountNames = new Map([...accounts].map(([name, id]) => [id, name]));
  const read = await it.read({
    markedIds: stored.filter(({ name }) => needed?.has(name) ?? true).map(({ targetId }) => targetId),
    accountName: (id) => accountNames.get(id) ?? id,
    nowSeconds: origin.nowSeconds,
  });
  const objects = new Map(read.filter(({ isEnded }) => !isEnded).map((one) => [one.id, one]));
  const ended = new Set(read.filter(({ isEnded }) => isEnded).map(({ id }) => id));
  const marks = new Map(stored.map((mark) => [mark.name, mark]));
  const names = new Map(stored.map(({ targetId, name }) => [targetId, name]));
  const [first] = objects.keys();
  if (kind === "account" && first !== undefined && !names.has(first) && !marks.has(firstAccount)) {
    names.set(first, firstAccount);
  }
  return { objects, ended, marks, names };
}

// The compiler cannot relate a kind to the type of its documents, which `strictly` has checked.
function kindOf(deps: DeclaredDeps, kind: DeclaredKind): Kind<Settings> {
  return kindsOf(deps)[kind] as unknown as Kind<Settings>;
}

/**
 * Returns the manager of the object. If the object is younger than its mark, it has no manager: the marked object was
 * deleted by hand, and this one was created by hand.
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

/** Returns the default settings that an object has if only its required members are given. */
async function defaultsOf(
  deps: DeclaredDeps,
  kind: DeclaredKind,
  name: string,
  settings: Settings,
  how: Applying,
): Promise<Settings> {
  const it = kindOf(deps, kind);
  const members = it.required.filter((member) => member in settings);
  const required = Object.fromEntries(members.map((member) => [member, settings[member]]));
  const defaults = { ...(await it.complete(name, required, how)) };
  for (const member of it.required) delete defaults[member];
  return defaults;
}

/**
 * Returns the default settings of a stored object. Returns none if the object could not be created today, for example
 * because its node was deleted. In this case, all settings are shown. Returns undefined if headrace.yaml defines the
 * same name, because the object then has no effect.
 */
async function defaultsOfStored(...about: Parameters<typeof defaultsOf>): Promise<Settings | undefined> {
  try {
    return await defaultsOf(...about);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return error.code === "permission_denied" ? undefined : {};
  }
}

function withoutDefaults(settings: Settings, defaults: Settings): Record<string, unknown> {
  const own = Object.entries(settings).filter(
    ([member, value]) => !(member in defaults && Bun.deepEquals(value, defaults[member])),
  );
  return Object.fromEntries(own);
}

function secretsOf({ secrets }: Kind<Settings>, spec: Settings): Settings {
  return setOnly(secrets?.(spec) ?? {});
}

function setOnly(secrets: Settings): Settings {
  return Object.fromEntries(Object.entries(secrets).filter(([, value]) => value !== undefined && value !== null));
}

function secretChanges(before: Settings, after: Settings): DeclaredChange[] {
  const members = new Set([...Object.keys(before), ...Object.keys(after)]);
  const changed = [...members].filter((member) => !Bun.deepEquals(before[member], after[member]));
  return changed.map((field) => ({ field, secret: true }));
}

/** Returns the changed members by their paths. A changed list counts as one change. */
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

/** Returns the error with the path of the document before the path of the wrong member, if the error names one. */
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
