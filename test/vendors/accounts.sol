// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {ERC7739} from "@openzeppelin/contracts/utils/cryptography/signers/draft-ERC7739.sol";
import {SignerECDSA} from "@openzeppelin/contracts/utils/cryptography/signers/SignerECDSA.sol";
import {SignerP256} from "@openzeppelin/contracts/utils/cryptography/signers/SignerP256.sol";
import {SignerWebAuthn} from "@openzeppelin/contracts/utils/cryptography/signers/SignerWebAuthn.sol";
import {ERC4337} from "solady/src/accounts/ERC4337.sol";
import {ERC4337Factory} from "solady/src/accounts/ERC4337Factory.sol";

/// Solady's account, which lacks only a name.
contract SoladyAccount is ERC4337 {
    function _domainNameAndVersion() internal pure override returns (string memory, string memory) {
        return ("Solady", "1");
    }
}

/// What a Solady account can be upgraded to: its owner has to sign for another domain.
contract SoladyAccountNext is ERC4337 {
    function _domainNameAndVersion() internal pure override returns (string memory, string memory) {
        return ("Solady", "2");
    }
}

contract SoladyFactory is ERC4337Factory {
    constructor(address account) ERC4337Factory(account) {}
}

/// OpenZeppelin's ERC-7739 with a key.
contract OpenZeppelinAccount is ERC7739, SignerECDSA {
    constructor(address owner) EIP712("OpenZeppelin", "1") SignerECDSA(owner) {}
}

/// OpenZeppelin's ERC-7739 with a passkey.
contract PasskeyAccount is ERC7739, SignerWebAuthn {
    constructor(bytes32 qx, bytes32 qy) EIP712("Passkey", "1") SignerP256(qx, qy) {}
}
