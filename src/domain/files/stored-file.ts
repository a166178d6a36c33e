// Records of files that clients upload or that batches create, and the port of their store.
import type { ResponseOwner, ResponseRow } from "../models/stored-response.ts";

/** Purposes that clients may give, as in OpenAI's API. */
export const uploadPurposes = ["assistants", "batch", "fine-tune", "vision", "user_data", "evals"] as const;
export type UploadPurpose = (typeof uploadPurposes)[number];

/**
 * `batch_requests` is the input of a batch whose lines came in a request and not as a file. Such a file is never
 * listed.
 */
export type FilePurpose = UploadPurpose | "batch_output" | "batch_requests";

/** The creator of a file: the same members as for stored responses. `ResponseOwner` decides who may see the file. */
export type MadeBy = Pick<ResponseRow, "accountId" | "environment" | "keyId" | "appId" | "personId" | "madeBy">;

export interface StoredFile extends MadeBy {
  id: string;
  purpose: FilePurpose;
  filename: string;
  /** The file's length in bytes. While the file is being written, the reserved length. */
  bytes: number;
  /** Unix seconds. */
  createdAt: number;
  /** Expiry in Unix seconds. An unfinished file is given up at this time. */
  expiresAt: number;
}

export interface FilePage {
  /** The last file of the previous page, or its id. */
  after: StoredFile | string | undefined;
  limit: number;
  order: "asc" | "desc";
  purpose: string | undefined;
}

/** A file's record is written before its first byte. So the remains of a killed process can be found and deleted. */
export interface FileStore {
  /**
   * Reserves space for a file. Returns false if the account's files, unfinished ones included, would exceed `maxBytes`.
   */
  begin(file: StoredFile, maxBytes: number): Promise<boolean>;
  /**
   * Marks the file as complete. Returns false if the account's files would exceed `maxBytes`; the file is then given
   * up. Also returns false if the file was given up before.
   */
  finish(file: StoredFile, maxBytes: number): Promise<boolean>;
  find(owner: ResponseOwner, id: string, nowSeconds: number): Promise<StoredFile | undefined>;
  /**
   * Finds a file of any owner, hidden or not, until `forget` deletes its record. Batches read their files with this.
   */
  named(id: string): Promise<StoredFile | undefined>;
  /** Lists files. Returns undefined if the file `after` is not in the list. */
  list(owner: ResponseOwner, page: FilePage, nowSeconds: number): Promise<StoredFile[] | undefined>;
  /** Hides the file. Its record stays until `forget`. Returns false if the file does not exist. */
  hide(owner: ResponseOwner, id: string, nowSeconds: number): Promise<boolean>;
  /** Hides a file of any owner, complete or not. Its record stays until `forget`. */
  giveUp(id: string): Promise<void>;
  /** Returns up to `limit` ids of files whose content can be deleted: hidden, expired or given up. */
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
  /** Seconds for which the completed file is kept. Null means the default. */
  keepSeconds: number | null;
  /** Id of the completed file. Null until the upload is completed. */
  fileId: string | null;
}

export interface UploadPart {
  id: string;
  uploadId: string;
  bytes: number;
  createdAt: number;
}

export interface UploadStore {
  /** Stores an upload. Returns false if the account's files and uploads together would exceed `maxBytes`. */
  create(upload: Upload, maxBytes: number): Promise<boolean>;
  /** Finds an upload. An expired upload is found until it is deleted. */
  find(owner: ResponseOwner, id: string): Promise<Upload | undefined>;
  /**
   * Adds a part's record before its first byte is written. Returns false if the upload is not pending, or its parts
   * would exceed the announced length.
   */
  addPart(part: UploadPart, nowSeconds: number): Promise<boolean>;
  parts(uploadId: string): Promise<UploadPart[]>;
  dropPart(id: string): Promise<void>;
  /** Completes or cancels an upload. Returns false if it is not pending. */
  end(id: string, end: { status: UploadStatus; fileId: string | null }): Promise<boolean>;
  /** Returns up to `limit` ids of parts that can be deleted, because their upload has ended or expired. */
  goneParts(nowSeconds: number, limit: number): Promise<string[]>;
  forgetParts(ids: readonly string[]): Promise<void>;
  /** Deletes uploads that expired a day ago and have no parts any more. */
  forgetEnded(nowSeconds: number): Promise<void>;
}
