// What the tests use of `oidc-provider`, which comes without types.
declare module "oidc-provider" {
  import type { IncomingMessage, ServerResponse } from "node:http";

  export interface StoredGrant {
    addOIDCScope(scope: string): void;
    save(): Promise<string>;
  }

  export interface StoredDeviceCode {
    clientId: string;
    params: { scope?: string };
    accountId?: string;
    grantId?: string;
    scope?: string;
    error?: string;
    errorDescription?: string;
    save(): Promise<string>;
  }

  export interface Interaction {
    prompt: { name: string };
    params: { client_id: string; scope?: string };
  }

  // biome-ignore lint/style/noDefaultExport: it is theirs
  export default class Provider {
    constructor(issuer: string, configuration: object);
    callback(): (req: IncomingMessage, res: ServerResponse) => void;
    interactionDetails(req: IncomingMessage, res: ServerResponse): Promise<Interaction>;
    interactionFinished(req: IncomingMessage, res: ServerResponse, result: object): Promise<void>;
    Grant: new (properties: {
      accountId: string;
      clientId: string;
    }) => StoredGrant;
    DeviceCode: { findByUserCode(userCode: string): Promise<StoredDeviceCode | undefined> };
  }
}
