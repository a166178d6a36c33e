// Declared objects: objects of the installation that operators keep in files, each with its external name and the set
// of files that manages it.
import type { Acting } from "./audit.ts";

/** The kinds in the order of creation: an object refers only to kinds before its own. */
export const declaredKinds = ["tier", "account", "upstream", "model", "mcp_server", "webhook", "key"] as const;
export type DeclaredKind = (typeof declaredKinds)[number];

/** Connects an object to its external name and to the files that manage the object. */
export interface DeclaredMark {
  kind: DeclaredKind;
  /** The external name, which is unique within the kind. */
  name: string;
  /** The object's own id, or its name if the kind has names. */
  targetId: string;
  /** Name of the set of files that manages the object. Null if the object only has an external name. */
  managedBy: string | null;
  /** Unix seconds of the last change of this mark. */
  changedAt: number;
}

export interface DeclaredMarks {
  list(): Promise<DeclaredMark[]>;
  /**
   * Stores the mark, if the stored mark of its kind and name still equals `before`. Returns false if another request
   * changed the mark.
   */
  put(mark: DeclaredMark, before: DeclaredMark | undefined, by: Acting): Promise<boolean>;
  remove(mark: DeclaredMark, by: Acting): Promise<void>;
}
