// What is out of order and was told of: kept until it is in order again, whichever process sees that.

export interface Incident {
  /** Such as `upstream:north`. */
  subject: string;
  /** Id of the process that sees it: another one may see the same thing in order. */
  replicaId: string;
  /** Unix seconds. */
  since: number;
}

export interface IncidentStore {
  list(): Promise<Incident[]>;
  /** False where it is known already. */
  begin(incident: Incident): Promise<boolean>;
  /** This process sees it on for one that is gone. */
  adopt(subject: string, from: string, to: string): Promise<void>;
  /** False where somebody else ended it, or has taken it over. */
  end(subject: string, replicaId: string): Promise<boolean>;
}
