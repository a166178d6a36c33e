// Schemas of OpenAI's files and uploads: the requests and answers of their endpoints.
import { z } from "zod";
import { type StoredFile, type Upload, type UploadPart, uploadPurposes } from "../domain/files/stored-file.ts";
import { unixSeconds } from "./parts.ts";

/** Time in seconds for which a file may be kept: from an hour to 30 days (OpenAI API reference, "Upload file"). */
const [minKeepSeconds, maxKeepSeconds] = [3_600, 2_592_000];

export const expiresAfter = z
  .object({
    anchor: z.literal("created_at"),
    seconds: z.int().min(minKeepSeconds).max(maxKeepSeconds),
  })
  .meta({ description: "When the file is deleted. Default and maximum: the server's own retention of files." });

export const purpose = z.enum(uploadPurposes);

/** The form with which a client uploads a file, by the names of its fields. */
export const fileForm = z
  .object({
    purpose,
    file: z.string().meta({ format: "binary", description: "The file. It may precede the other fields of the form." }),
    "expires_after[anchor]": z.literal("created_at").optional(),
    "expires_after[seconds]": z.coerce.number().int().min(minKeepSeconds).max(maxKeepSeconds).optional(),
  })
  .meta({ id: "FileForm" });

export const partForm = z
  .object({ data: z.string().meta({ format: "binary", description: "The bytes of the part." }) })
  .meta({ id: "UploadPartForm" });

export const fileObject = z
  .object({
    id: z.string(),
    object: z.literal("file"),
    bytes: z.int(),
    created_at: unixSeconds,
    expires_at: unixSeconds,
    filename: z.string(),
    purpose: z.string(),
    status: z.literal("processed"),
  })
  .meta({ id: "File" });

export const deletedFile = z
  .object({ id: z.string(), object: z.literal("file"), deleted: z.literal(true) })
  .meta({ id: "DeletedFile" });

export const uploadRequest = z
  .object({
    filename: z.string().min(1).max(512),
    purpose,
    bytes: z.int().min(1),
    mime_type: z.string().min(1).max(256),
    expires_after: expiresAfter.optional(),
  })
  .meta({ id: "UploadRequest" });

/** The body of a request that completes an upload (OpenAI API reference, "Complete upload"). */
export const uploadCompletion = z
  .object({
    part_ids: z.array(z.string()).min(1).max(1_000).describe("Ids of the parts, in the order of the file."),
    md5: z
      .string()
      .optional()
      .describe("MD5 of the whole file in hex digits. If it does not match, the upload is not completed."),
  })
  .meta({ id: "UploadCompletion" });

export const uploadObject = z
  .object({
    id: z.string(),
    object: z.literal("upload"),
    bytes: z.int(),
    created_at: unixSeconds,
    expires_at: unixSeconds,
    filename: z.string(),
    purpose: z.string(),
    status: z.enum(["pending", "completed", "cancelled", "expired"]),
    file: fileObject.nullable(),
  })
  .meta({ id: "Upload" });

export const uploadPart = z
  .object({
    id: z.string(),
    object: z.literal("upload.part"),
    created_at: unixSeconds,
    upload_id: z.string(),
  })
  .meta({ id: "UploadPart" });

export function fileToWire({
  id,
  bytes,
  createdAt,
  expiresAt,
  filename,
  purpose,
}: StoredFile): z.infer<typeof fileObject> {
  return {
    ...{ id, object: "file", bytes, created_at: createdAt, expires_at: expiresAt },
    ...{ filename, purpose, status: "processed" },
  };
}

/** Returns an upload in the form of the API. `file` is the file of an upload that is completed. */
export function uploadToWire(
  { id, bytes, createdAt, expiresAt, filename, purpose, status }: Upload,
  file: StoredFile | undefined,
  nowSeconds: number,
): z.infer<typeof uploadObject> {
  return {
    ...{ id, object: "upload", bytes, created_at: createdAt, expires_at: expiresAt, filename, purpose },
    status: status === "pending" && expiresAt <= nowSeconds ? "expired" : status,
    file: file ? fileToWire(file) : null,
  };
}

export function partToWire({ id, createdAt, uploadId }: UploadPart): z.infer<typeof uploadPart> {
  return { id, object: "upload.part", created_at: createdAt, upload_id: uploadId };
}
