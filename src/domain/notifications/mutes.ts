// The port by which people turn off mail notifications.

export interface NotificationMutes {
  isMuted(personId: string): Promise<boolean>;
  setMuted(personId: string, isMuted: boolean): Promise<void>;
}
