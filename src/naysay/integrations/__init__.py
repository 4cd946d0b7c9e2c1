"""Integrations with other frameworks, one module each; import the one you use.

naysay.integrations.sentence_transformers    mine_hard_negatives, with the arguments of the package's own;
                                             RefreshNegatives, also for transformers.Trainer; batch_sampler;
                                             mask_false_negatives
naysay.integrations.lightning                monitor_callback, a callback around difficulty.Monitor
naysay.integrations.pykeen                   ExactNegativeSampler for its pipeline, score_of(model)
naysay.integrations.pyg                      negative_sampling, structured_negative_sampling, ExactLinkSampler
naysay.integrations.metric_learning          SamplerMiner, SlotLoss, MinerSampler
"""
