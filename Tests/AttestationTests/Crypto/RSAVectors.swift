@testable import Attestation

/// Signatures of `RSAPublicKeyTests.message`, made once with private keys that were thrown away.
enum RSAVectors {
    /// A key with exponent 3.
    static let modulus = """
        gGHSrKRYVpRnroNAwGdI5_9W5OU2KKux12NQHa28TmfJJicwYmx5vfc5YBl8LZxUYW-q8KCbIjt3uOiJ\
        P_unmv32VlU2XxuCQ7NidLeSCe9yu68kmoowgnbwu7IJc-DWN3qC_PqI0VqP0X-hkQ3UpizRdC1mUVE3\
        0uz6XBCgy9IUDfSMGrkNaamOtnMYAMN3rlNN2m1Sq43zPMiW-7Hz6TGoSGXWn-o5BOQ10nC0ivePH6xO\
        fFfOeGwU2Xgtg1bN5lbtji8J5t6yoI_7lDo-ty0orWTYuTl-Iuk0ynqOfe7gSDsqVvxw7oOPF6gevYL7\
        MhuCNNGK0Pt0chmktVvChw
        """
    static let exponent: [UInt8] = [3]
    /// As RFC 8017, section 8.2.1, makes it.
    static let good = """
        YjMtsiFU8VqEQRtZ60lbVEofP9tnRMBK9ozR33X-feHvnXndghnkg_iScyqq6I6sOAMIoAGqV_8PU0IG\
        xkmrQiMmuGBgWrmxtPpmkMdmmhtF60Zpu8beF6G2jdikBnVo5GTgi325CFsgnSdR-zvhRKmshITxA4rD\
        p6K25smLDELhSUgdjVRm7U2kErGiRS8jPNqIFCJEhStfLJuAI0wLb0RMrpXO7zv-91dbTFx7JINqguKE\
        91Bck19RlUAs1oK5aC_NcRcxCXPKNcJkWlhH7OYas5rrPZka7AVfzJkQPM8_GzqRr3z3BZeP0RGn9FDr\
        xsRb5DbuIdC_G0WaeZVqFg
        """

    /// Another key, with a 32-bit exponent, and its signature.
    static let otherModulus = """
        nP6AbTSQomM2n6GP7ZKHP13fTjSqbHpe4nWNPUB1G9f0_M-cK6jevCHq61RYqJfKYvDMUl-m2x82BPrG\
        vcK7WvpssNTI8OhKSowNN1EPMIlgYd0I8UXYuSZmKxtVrDKMH7PymGF8IiP1y5UYDBDs5DOzeext7tta\
        -yDcc7qji45VNugWNAcVDN7PH-EhgPlN84YM1n4uZCbZSb1v9Dccu97tlWb-rGpURnaV0qXMBTfdrrSI\
        8KhUH_tZmC5kZt-yK5Aevd5GZE-AUSpOLGc1ZgUUYUSD0ufkiGYSHPZI1fxC3NLIAgZGNNzll60msOXQ\
        w3v6dxtrbMDFL2GhRm7EhQ
        """
    static let otherExponent: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFB]
    static let otherGood = """
        j87QP9hn9GMq7nH6wlixFqHEZpuMlfl8q8haa6A9skoBPi6KXhKoN_V_FeEhtavjF-ODe9FgkFm_LlGw\
        a5dVWQlEBJWZivQxTaJAMMtNKkWCEVAiJxh-Xjs4Y9LJZGoTXTdATXiO5eaD3JUSLoh9uToJLL6FxWXB\
        p2CfC1dtPocCFgU5IaYUzwitqZkZoBw8Dc_9_BeeuBsspfocPHEUVYooy2xI-6u-skXEgPa3zVpiB6Qz\
        wBojRKSxgjUBS8hMRmmW-8ijBhglm9brHXWEfo8qNvwjxyPn_vqFN40UEjW5Eh33hVaKefPQzHz0P7zD\
        MYfTNZzRYKIxmgtGlPb94w
        """

    /// What verifiers that parse the padding were known to take, by what is wrong with it; for the
    /// key with exponent 3.
    static let forged: [(what: String, signature: String)] = [
        (
            "the digest is followed by bytes of the signer's, behind short padding",
            """
            UKkS65oXk9JGsCYKUdbeERHCNAcjJCEi9tPHfYSx0glLf3DGJxYKSA0ToKPQHXayegSD9hZRRyTIZXhi\
            vP9s-r9XpnSvCdTH6VcGyVt5KOYuJy69oQPeyS_qdgA4N38SPgP-ejiQ-tM7RnqbtjheFA6W5Jl8fHiK\
            Eiail8a3ILrxOKfOWxM3s-pd-T5OfFP8KiTlmr2wiJlGLGMFE_ZN4E98P8_Js8Y5J7EwZkfl1imQ-Tl-\
            x_g130Ftd8bvWmQ1cuRZtyM1ntJjfCDt5RI341UMbzYjZPedFU_qAxJjv8V7lcWrvQQxOBPSh2tF-BmD\
            NAGDZC3VzgixT6LsBtvQSg
            """
        ),
        (
            "a cube root, made without the private key, of a message that only begins well",
            """
            AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
            AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
            AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAMsv9SnrceQVY\
            PXZ1IPUWQHWRdtN4JvLvY649x646F92V6UiBkXNJgHo3dV5ZrvfImrepobE8-YdeOmSLbShQ2eseLt3t\
            y74AQU8Dql4JX_vZGYn8UQ
            """
        ),
        (
            "the hash is named without its parameters",
            """
            KAFwLjoiGvpwNJ1G4Nmo0U_LyuV1RiAGCmIVKRpcy1txUjGhthWuJEy7-D49FLaLJPRXIPg5cjNJN8rX\
            4IWJ38vhljJmyR8m1NO1PHw4Bs42ZmDNKO42QzSLqC6fJ2aM3DdW2OXrV8PaCw1vcbnh8i58QXK2_Rax\
            kb6Szt3YnbD0JH5-pR7QLUQgVtxONHmUz8KYm18Jpq5hhuAwFAE91J9j_wSiQVEp2olKweCoHKhpDdGB\
            V4tkICIk-IEhqzD_0RWq9bt2nzebPEbwDxhRYyjRwxmUhscP42hkq40UwoWUWqth9Ts0DVw49m5COyN6\
            C2YP3aKpuDgbiNUBmRMvjg
            """
        ),
        (
            "another hash is named",
            """
            IbGbftI_A9INndWenBgJpDjY05Rn_3t571hcrVgsQdufQknQxWmqiTgfGV7yNZRz-Y1OcL01VGkta687\
            d-hdgmingjgZN7zGA5C2sA3gMRE-FBoS7n5ab70zqHzG65y66VnLk503i5iC-_3rwPnhU80TZYaP-0jQ\
            XMR1lWiS8bq4s3tkzgIibX87Gq4ozvB9qUPS3SD2JC_7me5Cx7MMBhVNFk8UjBtoP6L7KL6Jsw1PID_h\
            ADHM8Ojy7o-xf-zAFSALOy7GiASWlKg0tUvHn5Fx-OrQ501U5q2oZ-PvzJRJXteOqRNgBQ0jQtfJJmR_\
            XtXWKbOvvHjwW4k8VT4vBw
            """
        ),
        (
            "no hash is named",
            """
            K3HUcgATbaK_9IDhaOX--HMkVWxlRgLwKqmkeP_6X8vk6Hx__qOj-Mkg-At7K5tkKn6OAJjsIOGCcFXR\
            aE8Rd5oP962wb5K3x6Hvg-D8qXIb9lxpId-RVFaU8I-8X037yBWF5GsD2RWEemT-AEhi3aD56haCV-IZ\
            cVGaSJ40VA2l9MB5RuifFfu6GPbJtmqWZBgMCHawdwQX0mj3Tk-6DqJLlzKJlEjz6QY2kK9loCKqFFUc\
            qmWcXRWSxY1tUuak4dDbqtbuRT80UtD8EvjRn56-amjQ110k9y7ziY-_pS0U92ILFJrbkktypTa040AM\
            4C0JUQbNPdqaNc3g55pHIA
            """
        ),
        (
            "one byte of the padding differs",
            """
            ZrNThvBCY70k8mj37AzdsAQ5S-89AqqY6vwJWOJ5P51OlxGCRW_MFbH_4ClUg4upMxbTs7QhEIBzdQv5\
            laijBVGM9yRfTcQ-zzhgG012A50drSr3yqPLr0PhxvAgOwHAIrMdLMCUBy8cqfo-La_Q67NWKUxOV4lP\
            MuQpJr_cOq02YC3D6PZeDmfJmk_C8cEjEgc1tIKFpnv9BfQJKuOZuP-6_-Dz_Fnn_-sO07QlDHEy4qUc\
            3XkGhcVuoShVIUgP_1Ar8NEVj8UUc7Vq7YVLp6mokPgC-CE6J_opcjA6bRBnuf-EE7vPx1Easd1VEua2\
            bX3wJDFhUVnSMpR2SwGhsQ
            """
        ),
        (
            "no zero ends the padding",
            """
            Fu0JcDDjCa9JoOU93N_mSrqXI3_-DopxSQoBu0orVeGEsw1WV-y9dkdHiyaSi9wXv6CuSIn9RDhbumW2\
            I9jeI4wL8PU_J-0cJJ1l93dM21mwMN74neKdL2u1A5xQzqJTUbwpHyEiJIIxsa2XR8N3NkkxI94OaqBX\
            H2u4j6tQGAcRUMmJ_sUQ2n6UDiMPmHOEOV1JEpZezF3cmoNhSKl_OmAbyljpjzmJyJSTCa0rHFN4W3be\
            bzLZXUIM33kPNCOpKEJEpjQ330ffp5wZZSCUHJleT0NH1jBkJ4t0CHuJf16Evc9mO4Pdownk51BY0rYR\
            ouT7G2XU7L86Es6hSuP9gA
            """
        ),
        (
            "the padding is that of block type 0",
            """
            JgYe337PmQobE_1md1C1NZ556GDuqhvPcIi2xdKBGTrvAtvJA1byjpGVv79BP9SfFq686eIigLdssjQ7\
            p_Z9XtvVE9InV_somP7RrMSWjKfExu7qbjE8XzDf7IWOurb5tgo5LkzO4izUTzK24cuwoBGojVxOmqcq\
            U_2PSnwiHaOmbTeV8QOAkFV4ndDFWVyVFK9fWLndqQGbTSyH3_MVRfbl4H2eAhOWT4pW_H_GPJu9ryUt\
            EOdZqfHAMdCKxL-YlaWbWwLVMfiC08UdX7SAFvJbj92-lNCbXtRenfvwz1H_kdaSyhdwVxqBwKv3obgT\
            6ymBLgFnzsUmM_rQwE8sTw
            """
        ),
        (
            "the block type is that of encryption",
            """
            TZXRJiPbuoFtNT8hWhV3vGOvRx1BFnLBG1RvGIpfl60P2R2pU7t7aSA4Lb0nLHYAX9XvHdtzcu4Ll0zS\
            RrIvMl_U-qYgzyrl-RZOUIZIkXA2voVChIkWlebdUPb4kN6mIB8lHX03LtGV5KNgUGIeZiWR6aaqtPjX\
            ExNlMMxux-o00lBj6S6o51GDsJwLWu9Xg3FElStohG_7aMVQc1xA5RKu5ByYzq6Wvpno5a9uNcFoviOl\
            ayyKyB87Am5t4HlI1ENoLFMWrS2COhDQj_kNr9_T5tMSxQLOmhIwJe-SGlwUEaKYVYkty3y5lOOxJnBZ\
            baEXcKNJN2eF0azOpViakA
            """
        ),
        (
            "the modulus is added to a good signature",
            """
            4pUAXsWtR-7r756aq7CkPEl2JMCdbWv8zfAh_SO6zEm4w6EN5IZeQe_L00QnFisAmXKzkKJFejqHDCqQ\
            BkVS3SEdDrWWudUz-K3JBX74pAq4pvWOVlEOmhinSYqtelY_G99jiHhB2bWwbqbzjEm16tZ9-LJXVNv7\
            eo-xQtor2BT1VzypqA10VvcyySS6RfKa6y3V7o-XMLlSaWQXHv3_WHX09vuljyY3_DuRHs0vr3r5oo7T\
            c6grC8tmbrhaWdmHToa6_0Y68FJ81lJf7pKGpBNDYP_D9tKZDu6UlxOeur4fY3W8Bnln9Bse6LnGsdPm\
            -N_eGQh48swzjV8_LvEsnQ
            """
        ),
    ]

    /// The bytes of a value.
    static func bytes(_ text: String) -> [UInt8] { Base64.url.decode(Array(text.utf8).span) ?? [] }
}
