// OpenAI's file endpoints: upload, list, read and delete files.
import { z } from "zod";
import type { Clock } from "../../../base/clock.ts";
import { fieldError, GatewayError, invalidRequest } from "../../../base/errors.ts";
import { shown } from "../../../base/text/shown.ts";
import type { FileStore, MadeBy, StoredFile } from "../../../domain/files/stored-file.ts";
import { keyOf, makerOf, type Principal } from "../../../domain/principal.ts";
import type { NewFile, StoredFiles } from "../../../files/stored-files.ts";
import type { Throttle } from "../../../policy/throttle.ts";
import { validate } from "../../../requests/decode/validation.ts";
import { deletedFile, expiresAfter, fileForm, fileObject, fileToWire } from "../../../wire/files.ts";
import { readQuery } from "../../content/query.ts";
import type { Exchange, ScopedRoute } from "../../exchange/route.ts";
import { answerInTurn } from "../content-reads.ts";
import { keptRoutes } from "../kept-routes.ts";
import { listOf, pageOf, pageQuery } from "../list.ts";
import { listTurns } from "../list-turns.ts";
import { responseOwnerOf } from "../response-owner.ts";
import { receiveForm } from "./receive-form.ts";
import { sendBytes } from "./send-bytes.ts";

const route = keptRoutes({ base: "/v1/files", tag: "Files", noun: "file", errorForm: "asked" });

export interface FileRouteDeps {
  files: FileStore;
  storedFiles: StoredFiles;
  throttle: Pick<Throttle, "require">;
  clock: Clock;
}

const maxFilenameLength = 512;
const expiryForm = z.object({ expires_after: expiresAfter });
const noAnthropicFiles =
  "Anthropic's Files API is not served here. Send the file in the message: a `source` of type `base64`, `text` or `url`.";
/** Maximum files of one query, because SQLite runs on the main thread. */
const filesAtOnce = 1_000;
/** OpenAI's SDKs request up to 10,000 files in one page. */
const fileQuery = z.object({
  ...pageQuery,
  limit: z.coerce.number().int().min(1).max(10_000).default(1_000).meta({
    description: "a whole number from 1 to 10000: the maximum number of files",
  }),
  order: z.enum(["asc", "desc"]).default("desc").meta({ description: "asc (oldest first) or desc (newest first)" }),
  purpose: z.string().min(1).max(64).optional().meta({ description: "a purpose; only files with it are listed" }),
});

export function fileRoutes(deps: FileRouteDeps): ScopedRoute[] {
  const { files, clock } = deps;
  return [
    uploadRoute(deps),
    route(
      "GET",
      "",
      {
        operationId: "listFiles",
        summary: "List files",
        description: "Lists files that this credential may see and that have not expired, including files of batches.",
        query: fileQuery,
        response: { description: "One page.", json: listOf(fileObject, "FileList") },
      },
      (exchange, principal) => answerInTurn(exchange, principal, () => filesPage(exchange, principal, deps), listTurns),
    ),
    route(
      "GET",
      "/:id",
      {
        operationId: "retrieveFile",
        summary: "Retrieve a file",
        description: "Returns the file's metadata. Its bytes are at `/content`.",
        response: { description: "The file.", json: fileObject },
        errors: ["not_found"],
      },
      async (exchange, principal) => Response.json(fileToWire(await findFile(exchange, principal, deps))),
    ),
    route(
      "DELETE",
      "/:id",
      {
        operationId: "deleteFile",
        summary: "Delete a file",
        description: "The file is removed immediately, and its bytes within a minute.",
        response: { description: "The file is deleted.", json: deletedFile },
        errors: ["not_found"],
      },
      async ({ params }, principal) => {
        const id = params["id"] ?? "";
        if (!(await files.hide(responseOwnerOf(principal), id, clock.nowSeconds()))) throw fileNotFound(id);
        return Response.json({ id, object: "file", deleted: true });
      },
    ),
    route(
      "GET",
      "/:id/content",
      {
        operationId: "downloadFile",
        summary: "Download a file",
        response: { description: "Its bytes.", contentTypes: ["application/octet-stream"] },
        errors: ["not_found", "service_unavailable"],
      },
      async (exchange, principal) => {
        const file = await findFile(exchange, principal, deps);
        return await sendBytes(deps.storedFiles.read(file), "application/octet-stream", exchange.req.clientGone);
      },
    ),
  ];
}

async function filesPage({ req }: Exchange, principal: Principal, { files, clock }: FileRouteDeps): Promise<Response> {
  const { limit, ...page } = readQuery(fileQuery, req.target);
  const found: StoredFile[] = [];
  while (found.length <= limit) {
    const wanted = Math.min(limit + 1 - found.length, filesAtOnce);
    const asked = { ...page, after: found.at(-1) ?? page.after, purpose: page.purpose, limit: wanted };
    const piece = await files.list(responseOwnerOf(principal), asked, clock.nowSeconds());
    if (!piece) throw fieldError("after", "must be the id of a file, such as last_id of the page before.");
    found.push(...piece);
    if (piece.length < wanted) break;
    await new Promise(setImmediate);
  }
  return Response.json(pageOf(found.map(fileToWire), limit));
}

function uploadRoute(deps: FileRouteDeps): ScopedRoute {
  return route(
    "POST",
    "",
    {
      operationId: "createFile",
      summary: "Upload a file",
      description:
        "A form with `file` and `purpose`, in either order. The file is stored while it arrives. `expires_after[anchor]` and `expires_after[seconds]` set the time of deletion.",
      requestBody: fileForm,
      requestType: "multipart/form-data",
      response: { description: "The file.", json: fileObject },
      errors: ["invalid_request", "request_too_large", "unsupported_media_type", "service_unavailable"],
    },
    async (exchange, principal) => {
      await deps.throttle.require("change", principal);
      return Response.json(fileToWire(await receive(exchange, principal, deps)));
    },
  );
}

async function receive({ req }: Exchange, principal: Principal, { storedFiles }: FileRouteDeps): Promise<StoredFile> {
  let file: NewFile | undefined;
  try {
    const { fields, file: head } = await receiveForm(req, {
      fileField: "file",
      maxBytes: storedFiles.bounds.maxBytes,
      async open({ filename = "" }) {
        // The content length includes the form around the file, so it slightly exceeds the file's size.
        const announced = Number(req.headers.get("content-length") ?? 0);
        const bytes = Math.min(announced, storedFiles.bounds.maxBytes);
        file = await storedFiles.begin(madeBy(principal), { filename, purpose: "user_data", bytes });
        return file;
      },
    });
    if (!(file && head)) throw fieldError("file", "is required: send the file as the field `file` of the form.");
    const { filename = "" } = head;
    if (filename === "" || filename.length > maxFilenameLength || filename.includes("\0")) {
      throw fieldError("file", `must have a filename of 1 to ${maxFilenameLength} characters.`);
    }
    // Anthropic's SDKs send no purpose, and their users cannot set one.
    if (!fields.has("purpose") && req.headers.has("anthropic-version")) throw invalidRequest(noAnthropicFiles);
    const form = formOf(fields, filename);
    return await file.finish({ filename, purpose: form.purpose, keepSeconds: form["expires_after[seconds]"] ?? null });
  } catch (error) {
    await file?.abandon();
    throw error;
  }
}

function formOf(fields: ReadonlyMap<string, string>, filename: string) {
  const sent = { ...Object.fromEntries(fields), ...expiryOf(fields), file: filename };
  validate(fileForm, sent);
  const form = fileForm.parse(sent);
  if ((form["expires_after[anchor]"] === undefined) !== (form["expires_after[seconds]"] === undefined)) {
    throw invalidRequest("expires_after: needs both `anchor`, which is created_at, and `seconds`.");
  }
  return form;
}

/**
 * Returns the fields of `expires_after` by their names in brackets. OpenAI's SDK for Ruby sends the object as JSON, and
 * earlier SDKs for Go write `expires_after.seconds`.
 */
function expiryOf(fields: ReadonlyMap<string, string>) {
  const text = fields.get("expires_after");
  const object = text === undefined ? undefined : expiryInJson(text);
  const anchor = object?.anchor ?? fields.get("expires_after[anchor]") ?? fields.get("expires_after.anchor");
  const seconds = object?.seconds ?? fields.get("expires_after[seconds]") ?? fields.get("expires_after.seconds");
  return {
    ...(anchor === undefined ? {} : { "expires_after[anchor]": anchor }),
    ...(seconds === undefined ? {} : { "expires_after[seconds]": Number(seconds) }),
  };
}

function expiryInJson(text: string) {
  let value: unknown = text;
  try {
    value = JSON.parse(text);
  } catch {
    // If the field is no JSON, the validation below refuses its text.
  }
  const sent = { expires_after: value };
  validate(expiryForm, sent);
  return expiryForm.parse(sent).expires_after;
}

/** Returns the owner and creator of a new file or batch. */
export function madeBy(principal: Principal): MadeBy {
  const { account, environment, appId } = principal;
  const { id, personId } = keyOf(principal);
  return { accountId: account.id, environment, keyId: id, appId, personId, madeBy: makerOf(principal) };
}

export async function findFile(
  { params }: Pick<Exchange, "params">,
  principal: Principal,
  { files, clock }: Pick<FileRouteDeps, "files" | "clock">,
): Promise<StoredFile> {
  const id = params["id"] ?? "";
  const found = await files.find(responseOwnerOf(principal), id, clock.nowSeconds());
  if (!found) throw fileNotFound(id);
  return found;
}

/** Returns the error for an unknown file. A deleted file, and a file of another owner, get the same error. */
export function fileNotFound(id: string, param = "file_id"): GatewayError {
  return new GatewayError(
    "not_found",
    `There is no file \`${shown(id)}\`. Files are kept until they expire or are deleted; GET /v1/files lists them.`,
    { param },
  );
}
