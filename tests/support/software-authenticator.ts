// An authenticator in software: makes ES256 passkeys and signs with them as WebAuthn says, or in one point not.
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from "@simplewebauthn/server";

export interface SoftwarePasskey {
  id: Buffer;
  rpId: string;
  userHandle: string;
  privateKey: KeyObject;
  counter: number;
}

/** What differs from what an honest browser and authenticator would do. */
export interface Oddities {
  /** The origin that the page pretends to be at. */
  origin?: string;
  rpId?: string;
  challenge?: string;
  userVerified?: boolean;
  userHandle?: string;
  /** Further members of the client data. */
  clientData?: Readonly<Record<string, unknown>>;
  /** In place of none; `signed` is what a statement of format `packed` signs. */
  attestation?: (signed: Buffer, privateKey: KeyObject) => { format: string; statement: Map<string, unknown> };
}

const flag = { userPresent: 0x01, userVerified: 0x04, backupEligible: 0x08, backedUp: 0x10, credential: 0x40 };

export class SoftwareAuthenticator {
  readonly passkeys: SoftwarePasskey[] = [];
  readonly #origin: string;

  /** `origin`: of the page in the browser that it belongs to. */
  constructor(origin: string) {
    this.#origin = origin;
  }

  create(options: PublicKeyCredentialCreationOptionsJSON, odd: Oddities = {}): RegistrationResponseJSON {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const { x, y } = publicKey.export({ format: "jwk" });
    const rpId = odd.rpId ?? options.rp.id ?? "";
    const passkey = { id: randomBytes(32), rpId, userHandle: options.user.id, privateKey, counter: 0 };
    this.passkeys.push(passkey);
    const coseKey = cbor(
      new Map<number, unknown>([
        [1, 2],
        [3, -7],
        [-1, 1],
        [-2, Buffer.from(x ?? "", "base64url")],
        [-3, Buffer.from(y ?? "", "base64url")],
      ]),
    );
    const length = Buffer.alloc(2);
    length.writeUInt16BE(passkey.id.length);
    const credential = Buffer.concat([Buffer.alloc(16), length, passkey.id, coseKey]);
    const authData = Buffer.concat([this.#data(passkey, flag.credential, odd), credential]);
    const clientData = this.#clientData("webauthn.create", odd.challenge ?? options.challenge, odd);
    const signed = Buffer.concat([authData, createHash("sha256").update(clientData).digest()]);
    const { format, statement } = odd.attestation?.(signed, privateKey) ?? { format: "none", statement: new Map() };
    const attestation = cbor(
      new Map<string, unknown>([
        ["fmt", format],
        ["attStmt", statement],
        ["authData", authData],
      ]),
    );
    const id = passkey.id.toString("base64url");
    return {
      id,
      rawId: id,
      type: "public-key",
      clientExtensionResults: {},
      response: {
        clientDataJSON: clientData.toString("base64url"),
        attestationObject: attestation.toString("base64url"),
        transports: ["internal"],
      },
    };
  }

  get(options: PublicKeyCredentialRequestOptionsJSON, odd: Oddities = {}): AuthenticationResponseJSON {
    const passkey = this.passkeys.find(({ rpId }) => rpId === options.rpId);
    if (!passkey) throw new Error(`There is no passkey for ${options.rpId}.`);
    const authData = this.#data(odd.rpId === undefined ? passkey : { ...passkey, rpId: odd.rpId }, 0, odd);
    const clientData = this.#clientData("webauthn.get", odd.challenge ?? options.challenge, odd);
    const signed = Buffer.concat([authData, createHash("sha256").update(clientData).digest()]);
    const id = passkey.id.toString("base64url");
    return {
      id,
      rawId: id,
      type: "public-key",
      clientExtensionResults: {},
      response: {
        clientDataJSON: clientData.toString("base64url"),
        authenticatorData: authData.toString("base64url"),
        signature: sign("sha256", signed, passkey.privateKey).toString("base64url"),
        userHandle: odd.userHandle ?? passkey.userHandle,
      },
    };
  }

  #clientData(type: string, challenge: string, { origin = this.#origin, clientData = {} }: Oddities): Buffer {
    return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false, ...clientData }));
  }

  #data({ rpId, counter }: Pick<SoftwarePasskey, "rpId" | "counter">, more: number, odd: Oddities): Buffer {
    const verified = odd.userVerified === false ? 0 : flag.userVerified;
    const count = Buffer.alloc(4);
    count.writeUInt32BE(counter);
    const flags = Buffer.from([flag.userPresent | verified | flag.backupEligible | flag.backedUp | more]);
    return Buffer.concat([createHash("sha256").update(rpId).digest(), flags, count]);
  }
}

/** Writes as much of CBOR (RFC 8949) as WebAuthn needs. */
export function cbor(value: unknown): Buffer {
  if (typeof value === "number") return value >= 0 ? head(0, value) : head(1, -1 - value);
  if (typeof value === "string") return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (value instanceof Uint8Array) return Buffer.concat([head(2, value.length), value]);
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(cbor)]);
  if (!(value instanceof Map)) throw new Error(`no CBOR for ${typeof value}`);
  const members = [...value].flatMap(([name, member]) => [cbor(name), cbor(member)]);
  return Buffer.concat([head(5, value.size), ...members]);
}

function head(major: number, length: number): Buffer {
  const type = major << 5;
  if (length < 24) return Buffer.from([type | length]);
  if (length < 0x100) return Buffer.from([type | 24, length]);
  return Buffer.from([type | 25, length >> 8, length & 0xff]);
}
