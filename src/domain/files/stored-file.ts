// Records of files that clients upload or that batches create, and the port of their store.
import type { ResponseOwner, ResponseRow } from "../models/stored-response.ts";

/** Purposes that clients may give, as in OpenAI's API. */
export const uploadPurposes = ["assistants", "batch", "fine-tune", "vision", "user_data", "evals"] as const;
export type UploadPurpose = (typeof uploadPurposes)[number];

/** `batch_requests`: the lines of a batch that came without a file; never listed. */
export type FilePurpose = UploadPurpose | "batch_output" | "batch_requests";

/**
 * The creator of a file, with the same members as for stored responses. `ResponseOwner` decides who may see the file.
 */
export type MadeBy = Pick<ResponseRow, "accountId" | "environment" | "keyId" | "appId" | "personId" | "madeBy">;

export interface StoredFile extends MadeBy {
  id: string;
  purpose: FilePurpose;
  filename: string;
  /** The length in bytes; while the file is being written, the reserved length. */
  bytes: number;
  /** Unix seconds. */
  createdAt: number;
  /** Unix seconds; for an unfinished file, the time at which it is given up. */
  expiresAt: number;
}

export interface FilePage {
  /** The last file of the page before, or its id. */
  after: StoredFile | string | undefined;
  limit: number;
  order: "asc" | "desc";
  purpose: string | undefined;
}

/**
 * A file's record exists before its first byte is written, so that the remains of a killed process are found and
 * deleted.
 */
export interface FileStore {
  /** Returns false if the account's files, including unfinished ones, would exceed `maxBytes` together. */
  begin(file: StoredFile, maxBytes: number): Promise<boolean>;
  /**
   * Marks the file as complete. Returns false if the account's files would exceed `maxBytes`, and then gives the file
   * up, or if it was given up before.
   */
  finish(file: StoredFile, maxBytes: number): Promise<boolean>;
  find(owner: ResponseOwner, id: string, nowSeconds: number): Promise<StoredFile | undefined>;
  /** Finds a file of any owner, also a hidden one, until `forget`. A batch reads its files by this. */
  named(id: string): Promise<StoredFile | undefined>;
  /** Returns undefined if `after` is not in the list. */
  list(owner: ResponseOwner, page: FilePage, nowSeconds: number): Promise<StoredFile[] | undefined>;
  /** Hides the file from now on; its record stays until `forget`. Returns false if there is no such file. */
  hide(owner: ResponseOwner, id: string, nowSeconds: number): Promise<boolean>;
  /** Hides a file of any owner, written or not; its record stays until `forget`. */
  giveUp(id: string): Promise<void>;
  /** Returns up to `limit` ids of files that are hidden, expired or given up. */
  gone(nowSeconds: number, limit: number): Promise<string[]>;
  forget(ids: readonly string[]): Promise<void>;
}

export type UploadStatus = "pending" | "completed" | "cancelled";

/** A file that is uploaded in parts. */
export interface Upload extends MadeBy {
  id: string;
  filename: string;
  purpose: UploadPurpose;
  /** The length that the client announced. */
  bytes: number;
  mimeType: string;
  status: UploadStatus;
  createdAt: number;
  /** Unix seconds by which the upload must be completed. */
  expiresAt: number;
  /** Seconds for which the file is kept; null: the default. */
  keepSeconds: number | null;
  /** null until the upload is completed. */
  fileId: string | null;
}

export interface UploadPart {
  id: string;
  uploadId: string;
  bytes: number;
  createdAt: number;
}

export interface UploadStore {
  /** Returns false if the account's files and uploads would exceed `maxBytes` together. */
  create(upload: Upload, maxBytes: number): Promise<boolean>;
  /** Finds an upload. An expired one is found until it is deleted. */
  find(owner: ResponseOwner, id: string): Promise<Upload | undefined>;
  /**
   * Adds a part before its first byte is written. Returns false if the upload is not pending, or its parts would exceed
   * its length.
   */
  addPart(part: UploadPart, nowSeconds: number): Promise<boolean>;
  parts(uploadId: string): Promise<UploadPart[]>;
  dropPart(id: string): Promise<void>;
  /** Returns false if the upload is not pending. */
  end(id: string, end: { status: UploadStatus; fileId: string | null }): Promise<boolean>;
  /** Returns up to `limit` parts of uploads that have ended or expired. */
  goneParts(nowSeconds: number, limit: number): Promise<string[]>;
  forgetParts(ids: readonly string[]): Promise<void>;
  /** Deletes uploads without parts that expired a day ago. */
  forgetEnded(nowSeconds: number): Promise<void>;
}
