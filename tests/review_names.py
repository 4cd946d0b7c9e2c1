"""The 153 methods that the review names (Yang et al., TPAMI 2024), in its order, as a reader would type them."""

NAMES = """
word2vec; DeepWalk; LINE; node2vec; BPR; LightGCN; TransE; DistMult; RUBER; USR; Pan et al.; GraphSAGE; NGCF; Item2vec;
Yu et al.; PRIS; DNS; AOBPR; SGA; PinSage; distance-weighted sampling; Dual-AMN; Bucher et al.; bootstrapping; ANCE;
Gillick et al.; ADORE; IFND; Yang et al. (debiased CF); Max Sampling; two-stage; BootEA; Guo et al. (translations);
FaceNet; OHEM; smart mining; Galanopoulos and Mezaris; Simo-Serra et al.; Loshchilov and Hutter; Wang and Gupta; WARP;
Zhao et al.; Guo et al. (words); VSE++; VSE-ens; Li et al. (dialogue); MoCHi; MixGCF; MixKG; MixCSE; STENCIL; IRGAN;
SeqGAN; ACE; KBGAN; IGAN; NMRN; GraphGAN; ProGAN; SD-GAR; adversarial self-paced NE; CFGAN; AdvIR; HeGAN; SAN; NDA-GAN;
AdCo; CLAE; NEGCUT; DAML; Chen et al. (novelty); SBPR; PRFMC; MF-BPR; view-aware NS; ReinforcedNS; RecNS; MCNS; SANS;
GNEG; SamWalker; SamWalker++; KGPolicy; DSKReG; self-paced NE; Robust-NS; memory bank; NSCaching; SRNS; MoCo; MoCo v2;
MoCoRing; GCC; ESimCSE; MoCoSE; CERT; CMC; PIRL; N.S.; S3-Rec; SGL; MHCN; DHCN; SimCLR; MVGRL; GRACE; GraphCL; SimCSE;
InfoWord; Ye et al.; Yi et al.; DPR; RocketQA; GCA; CLEAR; CPC; DCL (debiased); GDCL; DCLR; FNC; CuCo; ProGCL; VaSCL;
SNCSE; BatchSampler; HCL; type-constrained; probabilistic NS; nearest-neighbour sampling; near-miss sampling; RotatE;
confidence-aware; SNS; ANS (clusters); TransG; mix sampling; NER random; NER weighted; CLINE; EBR; Xie et al.;
Ge et al. (texture); Ge et al. (patches); time-contrastive; Mao et al.; Iscen et al.; HDC; Cai et al.; Wang and Liu;
non-sampling; N-pair loss; ANS (adaptive k); SwAV
"""
REVIEW = [" ".join(name.split()) for name in NAMES.split(";")]
TODAY = ["SimANS", "AHNS", "DENS", "AdaSIR", "TAS-B", "ADORE", "STAR", "NV-Retriever", "GISTEmbed", "Conan", "RLHN"]
TODAY += ["Margin-MSE", "GradCache", "XBM", "CBNS", "MNS", "HDCCF", "DPO", "GloFND", "BYOL", "SimSiam", "BGRL"]
TODAY += ["Barlow Twins", "VICReg", "FairNeg", "MixDec", "UnReMix", "SynCo", "ARHN", "Negative cache", "EHCF"]
