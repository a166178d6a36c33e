/** Matches the codes of OpenSSL for errors of a certificate, and of Bun for an error of its name. */
export const certificateFault = /CERT_|_CERT$|_CERT_LOCALLY$|UNABLE_TO_(?:VERIFY|GET)_|ALTNAME_INVALID$/;
