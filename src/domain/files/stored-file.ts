// Files that clients upload, and those that batches make for them: their records, and where these are kept.
import type { ResponseOwner, ResponseRow } from "../models/stored-response.ts";

/** Purposes that clients may give, as OpenAI has them. */
export const uploadPurposes = ["assistants", "batch", "fine-tune", "vision", "user_data", "evals"] as const;
export type UploadPurpose = (typeof uploadPurposes)[number];

/** `batch_requests`: the lines of a batch that came without a file; never listed. */
export type FilePurpose = UploadPurpose | "batch_output" | "batch_requests";

/** Who made it, as with kept responses; who sees it is `ResponseOwner`. */
export type MadeBy = Pick<ResponseRow, "accountId" | "environment" | "keyId" | "appId" | "personId" | "madeBy">;

export interface StoredFile extends MadeBy {
  id: string;
  purpose: FilePurpose;
  filename: string;
  /** While it is still on its way, what is set aside for it. */
  bytes: number;
  /** Unix seconds. */
  createdAt: number;
  /** Unix seconds; of one on its way, when it is given up. */
  expiresAt: number;
}

export interface FilePage {
  after: string | undefined;
  limit: number;
  order: "asc" | "desc";
  purpose: string | undefined;
}

/**
 * A file is begun before its first byte is written and there once its last is: what a killed process leaves is found by its
 * record, and swept.
 */
export interface FileStore {
  /** False where the files of its account would have more than `maxBytes` together, those on their way included. */
  begin(file: StoredFile, maxBytes: number): Promise<boolean>;
  /** All of it is written. False as for `begin`, or where it was given up. */
  finish(file: StoredFile, maxBytes: number): Promise<boolean>;
  find(owner: ResponseOwner, id: string, nowSeconds: number): Promise<StoredFile | undefined>;
  /** Finds a file of any owner, also a hidden one, until `forget`. A batch reads its files by this. */
  named(id: string): Promise<StoredFile | undefined>;
  /** Undefined where `after` names none. */
  list(owner: ResponseOwner, page: FilePage, nowSeconds: number): Promise<StoredFile[] | undefined>;
  /** Nobody finds it from now on; its record stays until `forget`. False where there is none. */
  hide(owner: ResponseOwner, id: string, nowSeconds: number): Promise<boolean>;
  /** Hides a file of any owner, written or not; its record stays until `forget`. */
  giveUp(id: string): Promise<void>;
  /** Ids of files that are hidden, expired or given up, `limit` at most. */
  gone(nowSeconds: number, limit: number): Promise<string[]>;
  forget(ids: readonly string[]): Promise<void>;
}

export type UploadStatus = "pending" | "completed" | "cancelled";

/** A file that comes in parts. */
export interface Upload extends MadeBy {
  id: string;
  filename: string;
  purpose: UploadPurpose;
  /** Announced by its client. */
  bytes: number;
  mimeType: string;
  status: UploadStatus;
  createdAt: number;
  /** Unix seconds: by when it must be completed. */
  expiresAt: number;
  /** Seconds for which the file is kept; null: as usual. */
  keepSeconds: number | null;
  /** Null unless it is completed. */
  fileId: string | null;
}

export interface UploadPart {
  id: string;
  uploadId: string;
  bytes: number;
  createdAt: number;
}

export interface UploadStore {
  /** False where the files of its account and what it is uploading would have more than `maxBytes` together. */
  create(upload: Upload, maxBytes: number): Promise<boolean>;
  /** Expired ones are found for as long as they are there. */
  find(owner: ResponseOwner, id: string): Promise<Upload | undefined>;
  /** Before its first byte is written. False where it is pending no more, or its parts would have more bytes than it. */
  addPart(part: UploadPart, nowSeconds: number): Promise<boolean>;
  parts(uploadId: string): Promise<UploadPart[]>;
  dropPart(id: string): Promise<void>;
  /** False where it is pending no more. */
  end(id: string, end: { status: UploadStatus; fileId: string | null }): Promise<boolean>;
  /** Parts of uploads that have ended or expired, `limit` at most. */
  goneParts(nowSeconds: number, limit: number): Promise<string[]>;
  forgetParts(ids: readonly string[]): Promise<void>;
  /** Deletes uploads without parts that expired a day ago. */
  forgetEnded(nowSeconds: number): Promise<void>;
}
