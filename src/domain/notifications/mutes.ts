// The port by which people say that they want no mail of notices.

export interface NotificationMutes {
  isMuted(personId: string): Promise<boolean>;
  setMuted(personId: string, isMuted: boolean): Promise<void>;
}
