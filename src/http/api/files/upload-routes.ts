// OpenAI's endpoints for uploads: large files that arrive in parts.

import { createHash, randomUUID } from "node:crypto";
import { fieldError, GatewayError } from "../../../base/errors.ts";
import { longLived } from "../../../base/long-lived.ts";
import { shown } from "../../../base/text/shown.ts";
import type { ObjectStore, ObjectWriter } from "../../../domain/files/object-store.ts";
import type { StoredFile, Upload, UploadPart, UploadStore } from "../../../domain/files/stored-file.ts";
import type { Principal } from "../../../domain/principal.ts";
import { accountFull, type NewFile, tooLarge } from "../../../files/stored-files.ts";
import type { BodyLimits } from "../../../requests/decode/parse-body.ts";
import {
  partForm,
  partToWire,
  uploadCompletion,
  uploadObject,
  uploadPart,
  uploadRequest,
  uploadToWire,
} from "../../../wire/files.ts";
import { requireStorable } from "../../content/query.ts";
import { readStrictBody } from "../../content/strict-body.ts";
import type { Exchange, ScopedRoute } from "../../exchange/route.ts";
import { keptRoutes } from "../kept-routes.ts";
import { responseOwnerOf } from "../response-owner.ts";
import { type FileRouteDeps, madeBy } from "./file-routes.ts";
import { receiveForm } from "./receive-form.ts";

const route = keptRoutes({ base: "/v1/uploads", tag: "Files", noun: "upload" });

export interface UploadRouteDeps extends FileRouteDeps {
  uploads: UploadStore;
  objects: ObjectStore;
  /** Returns the limits of a request body. Called for every request, because a reload may change them. */
  requestLimits(): BodyLimits;
}

/** OpenAI API reference, "Uploads". */
const uploadSeconds = longLived.upload.maxMs / 1_000;
const maxPartBytes = 64 * 1024 * 1024;

export function uploadRoutes(deps: UploadRouteDeps): ScopedRoute[] {
  return [createRoute(deps), partRoute(deps), completeRoute(deps), cancelRoute(deps)];
}

function createRoute(deps: UploadRouteDeps): ScopedRoute {
  return route(
    "POST",
    "",
    {
      operationId: "createUpload",
      summary: "Begin an upload in parts",
      description: "For files that are too large for one request. Complete the upload within an hour.",
      requestBody: uploadRequest,
      example: { filename: "requests.jsonl", purpose: "batch", bytes: 1_000_000, mime_type: "application/jsonl" },
      response: { description: "The upload.", json: uploadObject },
      errors: ["invalid_request", "request_too_large", "unsupported_media_type"],
    },
    async ({ req }, principal) => {
      const { uploads, throttle, storedFiles, clock } = deps;
      const body = await readStrictBody(uploadRequest, req, deps.requestLimits());
      for (const name of ["filename", "mime_type"] as const) requireStorable(name, body[name]);
      if (body.bytes > storedFiles.bounds.maxBytes) throw tooLarge(storedFiles.bounds);
      await throttle.require("change", principal);
      const createdAt = clock.nowSeconds();
      const upload: Upload = {
        id: `upload_${randomUUID().replaceAll("-", "")}`,
        ...madeBy(principal),
        ...{ filename: body.filename, purpose: body.purpose, bytes: body.bytes, mimeType: body.mime_type },
        ...{ status: "pending", createdAt, expiresAt: createdAt + uploadSeconds },
        ...{ keepSeconds: body.expires_after?.seconds ?? null, fileId: null },
      };
      const { bounds } = storedFiles;
      if (!(await uploads.create(upload, bounds.accountBytes))) throw accountFull(bounds);
      return Response.json(uploadToWire(upload, undefined, createdAt));
    },
  );
}

function partRoute(deps: UploadRouteDeps): ScopedRoute {
  return route(
    "POST",
    "/:id/parts",
    {
      operationId: "addUploadPart",
      summary: "Add a part to an upload",
      description: `A form with the field \`data\`, of ${maxPartBytes} bytes at most. Parts may be sent concurrently, because the completion names their order.`,
      requestBody: partForm,
      requestType: "multipart/form-data",
      response: { description: "The part.", json: uploadPart },
      errors: ["not_found", "invalid_request", "request_too_large", "unsupported_media_type", "service_unavailable"],
    },
    async (exchange, principal) => {
      const upload = await findUpload(exchange, principal, deps);
      await deps.throttle.require("change", principal);
      return Response.json(partToWire(await receivePart(exchange, upload, deps)));
    },
  );
}

function completeRoute(deps: UploadRouteDeps): ScopedRoute {
  return route(
    "POST",
    "/:id/complete",
    {
      operationId: "completeUpload",
      summary: "Complete an upload",
      description: "The total size of the parts must match the size that the upload announced.",
      requestBody: uploadCompletion,
      response: { description: "The upload, with its file.", json: uploadObject },
      errors: ["not_found", "invalid_request", "request_too_large", "unsupported_media_type", "service_unavailable"],
    },
    async (exchange, principal) => {
      const upload = await findUpload(exchange, principal, deps);
      const body = await readStrictBody(uploadCompletion, exchange.req, deps.requestLimits());
      const now = deps.clock.nowSeconds();
      const file = await complete(upload, body, principal, deps);
      return Response.json(uploadToWire({ ...upload, status: "completed" }, file, now));
    },
  );
}

function cancelRoute({ uploads, ...deps }: UploadRouteDeps): ScopedRoute {
  return route(
    "POST",
    "/:id/cancel",
    {
      operationId: "cancelUpload",
      summary: "Cancel an upload",
      response: { description: "The upload.", json: uploadObject },
      errors: ["not_found", "invalid_request"],
    },
    async (exchange, principal) => {
      const upload = await findUpload(exchange, principal, { uploads, ...deps });
      if (upload.status !== "pending") throw notPending(upload);
      const isCancelled = await uploads.end(upload.id, { status: "cancelled", fileId: null });
      if (!isCancelled) throw notPending(upload);
      return Response.json(uploadToWire({ ...upload, status: "cancelled" }, undefined, deps.clock.nowSeconds()));
    },
  );
}

async function receivePart({ req }: Exchange, upload: Upload, deps: UploadRouteDeps): Promise<UploadPart> {
  const { uploads, objects, clock } = deps;
  const announced = Number(req.headers.get("content-length") ?? 0);
  const part = {
    ...{ id: `part_${randomUUID().replaceAll("-", "")}`, uploadId: upload.id },
    ...{ bytes: 0, createdAt: clock.nowSeconds() },
  };
  let writer: ObjectWriter | undefined;
  let bytes = 0;
  try {
    if (announced > 2 * maxPartBytes) throw partTooLarge();
    await receiveForm(req, {
      fileField: "data",
      maxBytes: maxPartBytes,
      async open() {
        const made = await objects.create(part.id);
        writer = made;
        return {
          async write(piece) {
            bytes += piece.byteLength;
            if (bytes > maxPartBytes) throw partTooLarge();
            await made.write(piece);
          },
        };
      },
    });
    if (!writer) throw fieldError("data", "is required: send the part as the file field `data` of the form.");
    // The row is written before the object, because an object without a row would never be found or deleted.
    const added = await uploads.addPart({ ...part, bytes }, clock.nowSeconds());
    if (!added) throw notPending(upload);
    await writer.finish();
    return { ...part, bytes };
  } catch (error) {
    await writer?.abandon();
    await uploads.dropPart(part.id);
    throw error;
  }
}

async function complete(
  upload: Upload,
  { part_ids: ids, md5 }: { part_ids: string[]; md5?: string | undefined },
  principal: Principal,
  { uploads, storedFiles, objects, clock }: UploadRouteDeps,
): Promise<StoredFile> {
  if (upload.status !== "pending" || upload.expiresAt <= clock.nowSeconds()) throw notPending(upload);
  const known = new Map((await uploads.parts(upload.id)).map((part) => [part.id, part]));
  const parts = ids.map((id, index) => {
    const part = known.get(id);
    if (!part || ids.indexOf(id) !== index) {
      throw fieldError(`part_ids[${index}]`, "must be the id of a part of this upload, each once.");
    }
    return part;
  });
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  if (bytes !== upload.bytes) {
    throw fieldError("part_ids", `must name parts of ${upload.bytes} bytes together, as announced (got ${bytes}).`);
  }
  const { filename, purpose, keepSeconds } = upload;
  const file = await storedFiles.begin(madeBy(principal), { filename, purpose, bytes });
  try {
    await join(parts, md5, file, objects);
    const made = await file.finish({ filename, purpose, keepSeconds });
    const isFirst = await uploads.end(upload.id, { status: "completed", fileId: made.id });
    if (isFirst) return made;
  } catch (error) {
    await file.abandon();
    throw error;
  }
  // Another request has completed or cancelled the upload.
  await file.abandon();
  throw notPending(upload);
}

async function join(parts: readonly UploadPart[], md5: string | undefined, file: NewFile, objects: ObjectStore) {
  const hash = createHash("md5");
  for (const { id, bytes } of parts) {
    for await (const piece of objects.read(id, { start: 0, end: bytes })) {
      hash.update(piece);
      await file.write(piece);
    }
  }
  const found = hash.digest("hex");
  if (md5 === undefined || md5.toLowerCase() === found) return;
  throw fieldError("md5", `must be the MD5 of the parts in this order, which is ${found}.`);
}

async function findUpload(
  { params }: Pick<Exchange, "params">,
  principal: Principal,
  { uploads }: Pick<UploadRouteDeps, "uploads">,
): Promise<Upload> {
  const id = params["id"] ?? "";
  const found = await uploads.find(responseOwnerOf(principal), id);
  if (found) return found;
  throw new GatewayError("not_found", `There is no upload \`${shown(id)}\`.`, { param: "upload_id" });
}

function notPending({ id }: Upload): GatewayError {
  return fieldError(
    "upload_id",
    `names \`${id}\`, which is completed, cancelled or expired, or whose parts would have more bytes than it announced. Begin a new upload.`,
  );
}

function partTooLarge(): GatewayError {
  return new GatewayError("request_too_large", `A part may have at most ${maxPartBytes} bytes.`, { param: "data" });
}
