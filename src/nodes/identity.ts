// The proof of who a node is: an Ed25519 key pair, and a signature over what the gateway says for one connection.
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";

export interface NodeKeyPair {
  /** 32 bytes as base64url: what the gateway keeps. */
  publicKey: string;
  /** PKCS #8 as base64url: never leaves the node. */
  privateKey: string;
}

/** The subject of a signature. Another gateway, another node, another connection or version needs another one. */
export interface ProofText {
  /** The subprotocol, with its major version. */
  protocol: string;
  /** The gateway's own URL, as the node knows it since it joined. */
  gateway: string;
  nodeId: string;
  /** The gateway's nonce, random for each connection; base64url. */
  nonce: string;
}

const publicKeyBytes = 32;
const signatureBytes = 64;

export function newNodeKey(): NodeKeyPair {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  return {
    publicKey: publicKey.export({ format: "jwk" }).x as string,
    privateKey: privateKey.export({ format: "der", type: "pkcs8" }).toString("base64url"),
  };
}

/** Whether it can be a node's public key at all. */
export function isPublicKey(publicKey: string): boolean {
  return isBytes(publicKey, publicKeyBytes);
}

/** Gives the signature as base64url. Throws where the key is none. */
export function signProof(privateKey: string, text: ProofText): string {
  const key = createPrivateKey({ key: Buffer.from(privateKey, "base64url"), format: "der", type: "pkcs8" });
  if (key.asymmetricKeyType !== "ed25519") throw new TypeError("The key of a node must be an Ed25519 key.");
  return sign(null, bytesOf(text), key).toString("base64url");
}

export function verifyProof(publicKey: string, text: ProofText, signature: string): boolean {
  if (!isPublicKey(publicKey) || !isBytes(signature, signatureBytes)) return false;
  try {
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: publicKey }, format: "jwk" });
    return verify(null, bytesOf(text), key, Buffer.from(signature, "base64url"));
  } catch {
    return false;
  }
}

/** Its first part keeps it from being taken for anything else that the key may sign one day. */
function bytesOf({ protocol, gateway, nodeId, nonce }: ProofText): Buffer {
  return Buffer.from(JSON.stringify(["headrace node authentication", protocol, gateway, nodeId, nonce]));
}

/** Exactly so many, written in the only way: a signature must not have two spellings. */
function isBytes(text: string, count: number): boolean {
  const bytes = Buffer.from(text, "base64url");
  return bytes.length === count && bytes.toString("base64url") === text;
}
