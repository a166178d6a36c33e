// A fault that was reported and has not ended yet. Any process may see its end.

export interface Incident {
  /** The faulty part, such as `upstream:north`. */
  subject: string;
  /** Id of the process that sees the fault. Other processes may not see it. */
  replicaId: string;
  /** Unix seconds. */
  since: number;
}

export interface IncidentStore {
  list(): Promise<Incident[]>;
  /** Stores an incident. Returns false if it is stored already. */
  begin(incident: Incident): Promise<boolean>;
  /** Moves an incident from the dead replica `from` to the replica `to`. */
  adopt(subject: string, from: string, to: string): Promise<void>;
  /** Ends an incident. Returns false if another process has ended it or taken it over. */
  end(subject: string, replicaId: string): Promise<boolean>;
}
