// A reported fault, kept until any process sees its end.

export interface Incident {
  /** The subject of the fault, such as `upstream:north`. */
  subject: string;
  /** Id of the process that sees the fault; other processes may not see it. */
  replicaId: string;
  /** Unix seconds. */
  since: number;
}

export interface IncidentStore {
  list(): Promise<Incident[]>;
  /** Returns false if the incident is known. */
  begin(incident: Incident): Promise<boolean>;
  /** Takes over an incident from a dead replica. */
  adopt(subject: string, from: string, to: string): Promise<void>;
  /** Returns false if another process ended it or took it over. */
  end(subject: string, replicaId: string): Promise<boolean>;
}
