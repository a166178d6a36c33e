// Finds the reason in a model server's error. The error body may have any shape.

export interface ReportedReason {
  readonly message?: string | undefined;
  /** The place in the request that has the fault, such as `messages[0].content`. */
  readonly place?: string | undefined;
  readonly code?: unknown;
  readonly type?: unknown;
}

type Json = Readonly<Record<string, unknown>>;

/** Maximum depth of errors that wrap other errors. No known gateway wraps errors this deep. */
const maxDepth = 6;
/** Maximum number of reasons that are read. A single fault in a request may break twenty rules of a server's schema. */
const maxReasons = 3;
/**
 * Names of members that hold the reason, beginning with the most specific. The name `title` comes from RFC 9457, and
 * `error_description` from OAuth.
 */
const reasonMembers = [
  ...["message", "msg", "detail", "error_description", "error_message", "errorMessage", "Message", "description"],
  ...["faultstring", "reason", "title"],
] as const;
/**
 * Names of members that hold the place of the fault: OpenAI's, FastAPI's, those of JSON Schema validators, and
 * Google's.
 */
const placeMembers = ["param", "loc", "field", "path", "pointer", "instancePath", "property"] as const;
/** Values that may begin the place in an error but that are not members of the request. */
const placeRoots: ReadonlySet<unknown> = new Set(["body", "query", "$", ""]);
const placePattern = /^[\w.[\]-]{1,128}$/;
const eventData = /^data: ?(.+)$/m;

/** Finds the reason in `text`, which is JSON, an event of a stream, or plain text. Markup has no reason. */
export function reportedReason(text: string): ReportedReason {
  const body = text.trim();
  const data = /^(?:data|event):/.test(body) ? (eventData.exec(body)?.[1] ?? "").trim() : body;
  const value = parsed(data);
  if (typeof value === "object") return reasonIn(value, 0);
  return data === "" || /^[<{[]/.test(data) ? {} : { message: data };
}

function reasonIn(value: unknown, depth: number): ReportedReason {
  if (depth > maxDepth) return {};
  if (typeof value === "string") return reasonInText(value, depth);
  if (Array.isArray(value)) return joined(value.slice(0, maxReasons).map((item) => reasonIn(item, depth + 1)));
  return isObject(value) ? reasonInObject(value, depth) : {};
}

/** Reads an error inside a text. Some gateways put the error body of the server behind them into a text. */
function reasonInText(text: string, depth: number): ReportedReason {
  const inner = parsed(text);
  const reason = typeof inner === "object" ? reasonIn(inner, depth + 1) : {};
  if (reason.message !== undefined) return reason;
  return { message: text.trim() === "" ? undefined : text };
}

function reasonInObject(object: Json, depth: number): ReportedReason {
  const read = (value: unknown) => reasonIn(value, depth + 1);
  const { error, errors, fault, metadata, details, fieldViolations } = object;
  const candidates = [
    // In OpenRouter's errors, `metadata` contains the message of the server behind OpenRouter.
    () => (isObject(metadata) ? read(metadata["raw"]) : {}),
    () => (typeof error === "string" ? {} : read(error)),
    () => read(fault),
    () => (isObject(errors) ? ofFields(errors, depth) : read(errors)),
    ...reasonMembers.map((name) => () => read(object[name])),
    // If `error` is a plain text, it is read last, because it often only repeats the name of the status.
    () => read(error),
    () => read(details),
    () => read(fieldViolations),
  ];
  let found: ReportedReason = {};
  for (const candidate of candidates) {
    found = candidate();
    if (found.message !== undefined) break;
  }
  const place = placeOf(object);
  const beside = place ?? found.place ?? read(details).place ?? read(fieldViolations).place;
  return {
    message: object["param"] === undefined ? withPlace(found.message, place) : found.message,
    place: beside,
    code: found.code ?? object["code"],
    type: found.type ?? object["type"],
  };
}

/** Joins errors that are grouped by member. ASP.NET and Rails send errors in this form. */
function ofFields(fields: Json, depth: number): ReportedReason {
  const whole = reasonInObject(fields, depth + 1);
  if (whole.message !== undefined) return whole;
  const faults = Object.entries(fields).slice(0, maxReasons);
  return joined(
    faults.map(([place, fault]) => {
      const { message } = reasonIn(fault, depth + 1);
      return { message: withPlace(message, place), place };
    }),
  );
}

function joined(reasons: readonly ReportedReason[]): ReportedReason {
  const messages = reasons.map(({ message }) => message).filter((message) => message !== undefined);
  const { code, type } = reasons.find((reason) => reason.message !== undefined) ?? {};
  const place = reasons.find((reason) => reason.place !== undefined)?.place;
  return { message: messages.length === 0 ? undefined : [...new Set(messages)].join("; "), place, code, type };
}

function withPlace(message: string | undefined, place: string | undefined): string | undefined {
  return message === undefined || place === undefined || message.includes(place) ? message : `${place}: ${message}`;
}

/** Writes the place in the form that this API uses: names with dots between them, and indices in brackets. */
function placeOf(object: Json): string | undefined {
  const { source } = object;
  const paths = placeMembers.map((name) => object[name] ?? (isObject(source) ? source[name] : undefined));
  for (const value of paths) {
    const steps = Array.isArray(value) ? value : typeof value === "string" ? value.split(/[/]/) : [];
    const rest = placeRoots.has(steps[0]) ? steps.slice(1) : steps;
    const place = rest.reduce<string>((before, step) => {
      if (typeof step === "number" || /^\d+$/.test(String(step))) return `${before}[${step}]`;
      return before === "" ? String(step) : `${before}.${step}`;
    }, "");
    if (placePattern.test(place)) return place;
  }
  return undefined;
}

function parsed(text: string): unknown {
  if (!/^\s*[{[]/.test(text)) return undefined;
  try {
    return JSON.parse(text) ?? undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
