// The proof of a node's identity: an Ed25519 key pair, and a signature over the gateway's message for one connection.
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";

export interface NodeKeyPair {
  /** The public key: 32 bytes as base64url, which the gateway stores. */
  publicKey: string;
  /** The private key: PKCS #8 as base64url, which never leaves the node. */
  privateKey: string;
}

/** The content of a signature. Another gateway, node, connection or version needs another signature. */
export interface ProofText {
  /** The subprotocol, with its major version. */
  protocol: string;
  /** The gateway's own URL, as the node got it when it joined. */
  gateway: string;
  nodeId: string;
  /** The gateway's nonce, random for each connection, in base64url. */
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

/** Reports whether a text can be a node's public key at all. */
export function isPublicKey(publicKey: string): boolean {
  return isBytes(publicKey, publicKeyBytes);
}

/** Returns the signature as base64url. Throws for an invalid key. */
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

/** Returns the bytes to sign. Their first part prevents confusion with anything else that the key may sign one day. */
function bytesOf({ protocol, gateway, nodeId, nonce }: ProofText): Buffer {
  return Buffer.from(JSON.stringify(["headrace node authentication", protocol, gateway, nodeId, nonce]));
}

/**
 * Reports whether text is exactly this many bytes in their only encoding, because a signature must not have two
 * spellings.
 */
function isBytes(text: string, count: number): boolean {
  const bytes = Buffer.from(text, "base64url");
  return bytes.length === count && bytes.toString("base64url") === text;
}
