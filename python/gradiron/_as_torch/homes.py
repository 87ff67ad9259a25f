"""Written by `scripts/homes.py`: where PyTorch keeps what gradiron keeps elsewhere."""

from __future__ import annotations

# For a module of ours and a module of PyTorch's, the names; `ours=theirs` where they differ.
HOMES: dict[str, dict[str, str]] = {
    "gradiron": {
        "torch._C": """
            Generator
        """,
    },
    "gradiron._C": {
        "torch": """
            PyTorchFileReader PyTorchFileWriter Type
        """,
    },
    "gradiron._core": {
        "torch._C": """
            _LinAlgError _disabled_torch_function_impl
        """,
        "torch._C._fft": """
            fft_fft fft_fft2 fft_fftn fft_hfft fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_irfft fft_irfft2 fft_irfftn
            fft_rfft fft_rfft2 fft_rfftn
        """,
        "torch._C._linalg": """
            linalg_cholesky linalg_cholesky_ex linalg_cond linalg_cross linalg_det linalg_diagonal linalg_eig linalg_eigh
            linalg_eigvals linalg_eigvalsh linalg_householder_product linalg_inv linalg_inv_ex linalg_ldl_factor
            linalg_ldl_factor_ex linalg_ldl_solve linalg_lstsq linalg_lu linalg_lu_factor linalg_lu_factor_ex
            linalg_lu_solve linalg_matmul linalg_matrix_exp linalg_matrix_norm linalg_matrix_power linalg_matrix_rank
            linalg_matrix_sqrth linalg_multi_dot linalg_norm linalg_pinv linalg_polar linalg_qr linalg_slogdet
            linalg_solve linalg_solve_ex linalg_solve_triangular linalg_svd linalg_svdvals linalg_tensorinv
            linalg_tensorsolve linalg_vander linalg_vecdot linalg_vector_norm
        """,
        "torch._C._special": """
            special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_entr
            special_erfcx special_i0e special_i1 special_i1e special_log_ndtr special_modified_bessel_k0
            special_modified_bessel_k1 special_ndtr special_ndtri special_scaled_modified_bessel_k0
            special_scaled_modified_bessel_k1 special_xlog1py special_zeta
        """,
        "torch.autograd.graph": """
            increment_version queue_callback
        """,
        "torch.functional": """
            block_diag broadcast_tensors cdist chain_matmul meshgrid norm split unique unique_consecutive
        """,
    },
    "gradiron._core._nn": {
        "torch": """
            bilinear celu_ channel_shuffle hardshrink native_channel_shuffle pdist pixel_shuffle pixel_unshuffle prelu
            rrelu_ selu_ threshold_
        """,
        "torch._C._nn": """
            avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear scaled_dot_product_attention softplus softshrink
        """,
        "torch.nn.functional": """
            binary_cross_entropy binary_cross_entropy_with_logits celu cross_entropy ctc_loss dropout elu glu hardsigmoid
            hardswish hardtanh huber_loss l1_loss log_softmax mish mse_loss multi_margin_loss multilabel_margin_loss
            nll_loss pad rrelu selu silu smooth_l1_loss soft_margin_loss softmax softmin
        """,
    },
    "gradiron._creation": {
        "torch": """
            as_tensor asarray can_cast from_numpy frombuffer is_complex is_floating_point is_tensor layout memory_format
            tensor
        """,
        "torch.functional": """
            atleast_1d atleast_2d atleast_3d broadcast_shapes cartesian_prod einsum tensordot
        """,
    },
    "gradiron._functions.differences": {
        "torch": """
            gradient
        """,
    },
    "gradiron._functions.histograms": {
        "torch": """
            histogram histogramdd
        """,
    },
    "gradiron._functions.indices": {
        "torch": """
            as_strided_scatter empty_permuted nonzero_static
        """,
        "torch.functional": """
            unravel_index
        """,
    },
    "gradiron._functions.settings": {
        "torch": """
            are_deterministic_algorithms_enabled compile get_default_device get_deterministic_debug_mode
            get_device_module get_float32_matmul_precision get_num_interop_threads
            is_deterministic_algorithms_warn_only_enabled set_default_device set_default_tensor_type
            set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal set_num_interop_threads
            use_deterministic_algorithms
        """,
    },
    "gradiron._functions.spectral": {
        "torch": """
            bartlett_window blackman_window hamming_window hann_window istft kaiser_window
        """,
        "torch.functional": """
            stft
        """,
    },
    "gradiron._functions.symbols": {
        "torch": """
            sym_float sym_int sym_ite sym_max sym_min sym_not sym_sum
        """,
    },
    "gradiron._higher_order_ops._control_flow": {
        "torch": """
            cond
        """,
    },
    "gradiron._limits": {
        "torch": """
            finfo iinfo
        """,
    },
    "gradiron._pickling.rebuild": {
        "torch._utils": """
            _rebuild_device_tensor_from_cpu_tensor _rebuild_device_tensor_from_numpy _rebuild_meta_tensor_no_storage
            _rebuild_parameter _rebuild_parameter_with_state _rebuild_sparse_tensor _rebuild_tensor _rebuild_tensor_v2
            _rebuild_tensor_v3
        """,
    },
    "gradiron._pickling.state": {
        "torch._utils": """
            _get_obj_state _set_obj_state
        """,
    },
    "gradiron._storage": {
        "torch.storage": """
            UntypedStorage
        """,
    },
    "gradiron._streams": {
        "torch": """
            Event Stream
        """,
    },
    "gradiron._tensor": {
        "torch": """
            is_distributed
        """,
        "torch.functional": """
            lu
        """,
    },
    "gradiron._types": {
        "torch": """
            OutOfMemoryError Size typename
        """,
    },
    "gradiron.amp.autocast_mode": {
        "torch": """
            autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_cpu_dtype
            get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled is_autocast_cpu_enabled
            is_autocast_enabled set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled
            set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype
        """,
    },
    "gradiron.ao.quantization": {
        "torch.ao.quantization.stubs": """
            DeQuantStub QuantStub
        """,
    },
    "gradiron.autograd": {
        "torch.autograd.variable": """
            Variable
        """,
    },
    "gradiron.autograd._old_jacobians": {
        "torch.autograd.gradcheck": """
            get_analytical_jacobian get_numerical_jacobian get_numerical_jacobian_wrt_specific_input
        """,
    },
    "gradiron.autograd._profiler_parts": {
        "torch._C._autograd": """
            DeviceType
        """,
        "torch.autograd.profiler": """
            EnforceUnique KinetoStepTracker
        """,
        "torch.autograd.profiler_util": """
            Kernel MemRecordsAcc StringTable
        """,
    },
    "gradiron.cuda._memory": {
        "torch.cuda": """
            ipc_collect
        """,
        "torch.cuda.memory": """
            empty_cache max_memory_allocated max_memory_reserved mem_get_info memory_allocated memory_reserved
            memory_stats memory_summary reset_peak_memory_stats
        """,
    },
    "gradiron.cuda._random": {
        "torch.cuda.random": """
            get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all seed seed_all set_rng_state
            set_rng_state_all
        """,
    },
    "gradiron.cuda._stream": {
        "torch.cuda": """
            StreamContext current_stream default_stream set_stream stream
        """,
        "torch.cuda.streams": """
            Event Stream
        """,
    },
    "gradiron.distributed._backends": {
        "torch.distributed": """
            is_available
        """,
        "torch.distributed.distributed_c10d": """
            Backend BackendConfig is_backend_available is_mpi_available is_nccl_available is_torchelastic_launched
            is_ucc_available is_xccl_available
        """,
    },
    "gradiron.distributed._collectives": {
        "torch.distributed.distributed_c10d": """
            all_gather all_gather_coalesced all_gather_into_tensor all_reduce all_reduce_coalesced all_to_all
            all_to_all_single barrier broadcast gather monitored_barrier reduce reduce_scatter reduce_scatter_tensor
            scatter supports_complex
        """,
    },
    "gradiron.distributed._grad_bucket": {
        "torch._C._distributed_c10d": """
            BuiltinCommHookType GradBucket
        """,
    },
    "gradiron.distributed._groups": {
        "torch.distributed.distributed_c10d": """
            destroy_process_group init_process_group new_group new_subgroups new_subgroups_by_enumeration set_timeout
            split_group
        """,
    },
    "gradiron.distributed._messages": {
        "torch.distributed.distributed_c10d": """
            P2POp batch_isend_irecv irecv isend recv send
        """,
    },
    "gradiron.distributed._registry": {
        "torch.distributed.distributed_c10d": """
            GroupMember get_backend get_backend_config get_default_backend_for_device get_global_rank get_group_rank
            get_node_local_rank get_pg_count get_process_group_ranks get_rank get_world_size group is_initialized
        """,
    },
    "gradiron.distributed.checkpoint.state_dict_io": {
        "torch.distributed.checkpoint.api": """
            CheckpointException
        """,
        "torch.distributed.checkpoint.state_dict_loader": """
            load
        """,
        "torch.distributed.checkpoint.state_dict_saver": """
            async_save save
        """,
    },
    "gradiron.distributed.debug": {
        "torch._C._distributed_c10d": """
            set_debug_level set_debug_level_from_env
        """,
        "torch.distributed.distributed_c10d": """
            DebugLevel get_debug_level
        """,
    },
    "gradiron.distributed.elastic.multiprocessing.errors": {
        "torch.distributed.elastic.multiprocessing.errors.error_handler": """
            ErrorHandler
        """,
        "torch.distributed.elastic.multiprocessing.errors.handlers": """
            get_error_handler
        """,
    },
    "gradiron.distributed.file_store": {
        "torch._C._distributed_c10d": """
            FileStore
        """,
    },
    "gradiron.distributed.fsdp._fully_shard": {
        "torch.distributed.fsdp": """
            CPUOffloadPolicy DataParallelMeshDims FSDPModule GradientReductionHandle MixedPrecisionPolicy OffloadPolicy
            UnshardHandle
        """,
    },
    "gradiron.distributed.optim": {
        "torch.distributed.optim.optimizer": """
            DistributedOptimizer
        """,
    },
    "gradiron.distributed.options": {
        "torch.distributed.distributed_c10d": """
            AllToAllOptions AllreduceCoalescedOptions AllreduceOptions BarrierOptions BroadcastOptions GatherOptions
            ReduceOp ReduceOptions ReduceScatterOptions ScatterOptions
        """,
    },
    "gradiron.distributed.pipelining": {
        "torch.distributed.pipelining._IR": """
            Pipe SplitPoint pipe_split pipeline
        """,
        "torch.distributed.pipelining.schedules": """
            Schedule1F1B ScheduleDualPipeV ScheduleGPipe ScheduleInterleaved1F1B ScheduleInterleavedZeroBubble
            ScheduleLoopedBFS ScheduleZBVZeroBubble
        """,
        "torch.distributed.pipelining.stage": """
            PipelineStage build_stage
        """,
    },
    "gradiron.distributed.process_group": {
        "torch.distributed.distributed_c10d": """
            ProcessGroup
        """,
    },
    "gradiron.distributed.rpc": {
        "torch.distributed.rpc.api": """
            RRef get_worker_info remote rpc_async rpc_sync shutdown
        """,
        "torch.distributed.rpc.options": """
            TensorPipeRpcBackendOptions
        """,
    },
    "gradiron.distributed.store": {
        "torch._C._distributed_c10d": """
            HashStore TCPStore
        """,
        "torch.distributed.distributed_c10d": """
            PrefixStore Store
        """,
    },
    "gradiron.distributed.tensor.parallel": {
        "torch.distributed.tensor.parallel.api": """
            parallelize_module
        """,
        "torch.distributed.tensor.parallel.loss": """
            loss_parallel
        """,
        "torch.distributed.tensor.parallel.style": """
            ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput PrepareModuleOutput RowwiseParallel
            SequenceParallel
        """,
    },
    "gradiron.distributed.work": {
        "torch.distributed.distributed_c10d": """
            Work
        """,
    },
    "gradiron.fft": {
        "torch._C._fft": """
            fftfreq=fft_fftfreq fftshift=fft_fftshift ifftshift=fft_ifftshift rfftfreq=fft_rfftfreq
        """,
    },
    "gradiron.func._effects": {
        "torch.func": """
            debug_unwrap functionalize
        """,
    },
    "gradiron.func._forward": {
        "torch.func": """
            jacfwd jvp linearize
        """,
    },
    "gradiron.func._module": {
        "torch.func": """
            functional_call replace_all_batch_norm_modules_ stack_module_state
        """,
    },
    "gradiron.func._rearrange": {
        "torch.func": """
            rearrange
        """,
    },
    "gradiron.func._reverse": {
        "torch.func": """
            grad grad_and_value hessian jacrev vjp
        """,
    },
    "gradiron.func._vmap": {
        "torch.func": """
            vmap
        """,
    },
    "gradiron.futures": {
        "torch": """
            Future
        """,
    },
    "gradiron.fx._code_writer": {
        "torch.fx.graph": """
            PythonCode
        """,
    },
    "gradiron.fx._tracer": {
        "torch.fx._symbolic_trace": """
            Tracer
        """,
    },
    "gradiron.fx._wrap": {
        "torch.fx._symbolic_trace": """
            wrap
        """,
    },
    "gradiron.jit": {
        "torch._jit_internal": """
            export ignore unused
        """,
        "torch.jit._async": """
            fork wait
        """,
        "torch.jit._freeze": """
            freeze optimize_for_inference
        """,
        "torch.jit._fuser": """
            set_fusion_strategy
        """,
        "torch.jit._script": """
            Attribute ScriptModule interface script
        """,
        "torch.jit._serialization": """
            load save
        """,
        "torch.jit._trace": """
            trace trace_module
        """,
    },
    "gradiron.masked": {
        "torch.masked._ops": """
            amax amin argmax argmin cumprod cumsum log_softmax logaddexp logsumexp mean median norm normalize prod
            softmax softmin std sum var
        """,
    },
    "gradiron.nested": {
        "torch._C._nested": """
            to_padded_tensor=nested_to_padded_tensor
        """,
    },
    "gradiron.nn._activations": {
        "torch.nn.functional": """
            leaky_relu relu relu6 sigmoid tanh
        """,
    },
    "gradiron.nn._attention": {
        "torch.nn.functional": """
            multi_head_attention_forward
        """,
    },
    "gradiron.nn._compositions": {
        "torch": """
            conv_tbc cosine_similarity pairwise_distance
        """,
        "torch.nn.functional": """
            alpha_dropout dropout1d dropout2d dropout3d feature_alpha_dropout gaussian_nll_loss gumbel_softmax
            linear_cross_entropy local_response_norm lp_pool1d lp_pool2d lp_pool3d multilabel_soft_margin_loss normalize
            softsign tanhshrink triplet_margin_with_distance_loss upsample upsample_bilinear upsample_nearest
        """,
    },
    "gradiron.nn._embedding": {
        "torch.nn.functional": """
            embedding embedding_bag
        """,
    },
    "gradiron.nn._graphed_callables": {
        "torch.cuda.graphs": """
            make_graphed_callables
        """,
    },
    "gradiron.nn._losses": {
        "torch.nn.functional": """
            cosine_embedding_loss hinge_embedding_loss kl_div margin_ranking_loss poisson_nll_loss triplet_margin_loss
        """,
    },
    "gradiron.nn._normalization": {
        "torch.nn.functional": """
            batch_norm group_norm instance_norm rms_norm
        """,
    },
    "gradiron.nn._pooling": {
        "torch.nn.functional": """
            adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool1d_with_indices
            adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d adaptive_max_pool3d_with_indices
            fold fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d
            fractional_max_pool3d_with_indices max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices
            max_pool3d max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d unfold
        """,
    },
    "gradiron.nn._resizing": {
        "torch.nn.functional": """
            affine_grid grid_sample interpolate
        """,
    },
    "gradiron.nn._top_level": {
        "torch": """
            alpha_dropout alpha_dropout_ binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss dropout_
            feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ grid_sampler_2d grid_sampler_3d
            hinge_embedding_loss kl_div margin_ranking_loss native_dropout native_group_norm norm_except_dim
            poisson_nll_loss triplet_margin_loss
        """,
    },
    "gradiron.nn.modules._hooks": {
        "torch.nn.modules.module": """
            register_module_backward_hook register_module_buffer_registration_hook register_module_forward_hook
            register_module_forward_pre_hook register_module_full_backward_hook register_module_full_backward_pre_hook
            register_module_module_registration_hook register_module_parameter_registration_hook
        """,
    },
    "gradiron.onnx._export": {
        "torch.onnx": """
            export
        """,
    },
    "gradiron.onnx._program": {
        "torch.onnx": """
            ONNXProgram
        """,
    },
    "gradiron.onnx.errors": {
        "torch.onnx": """
            OnnxExporterError
        """,
    },
    "gradiron.optim._adafactor": {
        "torch.optim": """
            Adafactor
        """,
        "torch.optim.functional": """
            adafactor
        """,
    },
    "gradiron.optim._muon": {
        "torch.optim": """
            Muon
        """,
        "torch.optim.functional": """
            muon
        """,
    },
    "gradiron.optim._stateless": {
        "torch.optim": """
            swap_in_optimizer_params_and_state
        """,
    },
    "gradiron.overrides": {
        "torch._C": """
            DisableTorchFunction DisableTorchFunctionSubclass
        """,
    },
    "gradiron.profiler": {
        "torch._C._autograd": """
            kineto_available
        """,
        "torch.profiler.profiler": """
            profile supported_activities tensorboard_trace_handler
        """,
    },
    "gradiron.profiler._schedule": {
        "torch._C._profiler": """
            ProfilerActivity
        """,
        "torch.profiler.profiler": """
            ProfilerAction schedule
        """,
    },
    "gradiron.serialization._map_location": {
        "torch.serialization": """
            default_restore_location location_tag register_package validate_cuda_device
        """,
    },
    "gradiron.serialization._weights_only": {
        "torch.serialization": """
            add_safe_globals clear_safe_globals get_safe_globals safe_globals
        """,
    },
    "gradiron.signal.windows": {
        "torch.signal.windows.windows": """
            bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming hann kaiser nuttall
        """,
    },
    "gradiron.sparse": {
        "torch._C._sparse": """
            log_softmax=_sparse_log_softmax mm=_sparse_mm softmax=_sparse_softmax
        """,
    },
    "gradiron.sparse._build": {
        "torch": """
            sparse_coo_tensor
        """,
    },
    "gradiron.sparse._compressed": {
        "torch": """
            sparse_compressed_tensor sparse_csc_tensor sparse_csr_tensor
        """,
    },
    "gradiron.sparse._products": {
        "torch": """
            mm=dsmm
        """,
        "torch._C._sparse": """
            addmm=_sparse_addmm
        """,
    },
    "gradiron.special": {
        "torch._C._special": """
            chebyshev_polynomial_t=special_chebyshev_polynomial_t chebyshev_polynomial_u=special_chebyshev_polynomial_u
            chebyshev_polynomial_v=special_chebyshev_polynomial_v chebyshev_polynomial_w=special_chebyshev_polynomial_w
            hermite_polynomial_h=special_hermite_polynomial_h hermite_polynomial_he=special_hermite_polynomial_he
            laguerre_polynomial_l=special_laguerre_polynomial_l legendre_polynomial_p=special_legendre_polynomial_p
            shifted_chebyshev_polynomial_t=special_shifted_chebyshev_polynomial_t
            shifted_chebyshev_polynomial_u=special_shifted_chebyshev_polynomial_u
            shifted_chebyshev_polynomial_v=special_shifted_chebyshev_polynomial_v
            shifted_chebyshev_polynomial_w=special_shifted_chebyshev_polynomial_w
            spherical_bessel_j0=special_spherical_bessel_j0
        """,
    },
    "gradiron.storage": {
        "torch": """
            from_file is_storage
        """,
    },
    "gradiron.testing._allclose": {
        "torch.testing._comparison": """
            assert_allclose
        """,
    },
    "gradiron.testing._compare": {
        "torch.testing._comparison": """
            assert_close
        """,
    },
    "gradiron.testing._create": {
        "torch.testing._creation": """
            make_tensor
        """,
    },
    "gradiron.types": {
        "torch": """
            SymBool SymFloat SymInt
        """,
    },
    "gradiron.utils._selective": {
        "torch.utils.checkpoint": """
            CheckpointPolicy SelectiveCheckpointContext create_selective_checkpoint_contexts
        """,
    },
    "gradiron.utils._swap": {
        "torch.utils": """
            swap_tensors
        """,
    },
    "gradiron.utils.benchmark._compare": {
        "torch.utils.benchmark.utils.compare": """
            Compare
        """,
    },
    "gradiron.utils.benchmark._measurement": {
        "torch.utils.benchmark.utils.common": """
            Measurement TaskSpec ordered_unique select_unit trim_sigfig unit_to_english
        """,
    },
    "gradiron.utils.benchmark._timer": {
        "torch.utils.benchmark.utils.timer": """
            Language Timer timer
        """,
    },
    "gradiron.utils.data.datapipes.datapipe": {
        "torch.utils.data.datapipes._decorator": """
            functional_datapipe
        """,
    },
    "gradiron.utils.data.datapipes.iter": {
        "torch.utils.data.datapipes.iter.callable": """
            CollatorIterDataPipe MapperIterDataPipe
        """,
        "torch.utils.data.datapipes.iter.combinatorics": """
            SamplerIterDataPipe ShufflerIterDataPipe
        """,
        "torch.utils.data.datapipes.iter.combining": """
            ConcaterIterDataPipe DemultiplexerIterDataPipe ForkerIterDataPipe MultiplexerIterDataPipe ZipperIterDataPipe
        """,
        "torch.utils.data.datapipes.iter.grouping": """
            BatcherIterDataPipe GrouperIterDataPipe UnBatcherIterDataPipe
        """,
        "torch.utils.data.datapipes.iter.selecting": """
            FilterIterDataPipe
        """,
        "torch.utils.data.datapipes.iter.sharding": """
            ShardingFilterIterDataPipe
        """,
        "torch.utils.data.datapipes.iter.utils": """
            IterableWrapperIterDataPipe
        """,
    },
    "gradiron.utils.data.datapipes.map": {
        "torch.utils.data.datapipes.map.callable": """
            MapperMapDataPipe
        """,
        "torch.utils.data.datapipes.map.combinatorics": """
            ShufflerIterDataPipe
        """,
        "torch.utils.data.datapipes.map.combining": """
            ConcaterMapDataPipe ZipperMapDataPipe
        """,
        "torch.utils.data.datapipes.map.grouping": """
            BatcherMapDataPipe
        """,
        "torch.utils.data.datapipes.map.utils": """
            SequenceWrapperMapDataPipe
        """,
    },
    "gradiron.xpu": {
        "torch.xpu.graphs": """
            XPUGraph graph graph_pool_handle is_current_stream_capturing make_graphed_callables
        """,
        "torch.xpu.memory": """
            MemPool XPUPluggableAllocator change_current_allocator empty_cache get_per_process_memory_fraction
            max_memory_allocated max_memory_reserved mem_get_info memory_allocated memory_reserved memory_snapshot
            memory_stats memory_stats_as_nested_dict reset_accumulated_memory_stats reset_peak_memory_stats
            set_per_process_memory_fraction use_mem_pool
        """,
        "torch.xpu.random": """
            get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all seed seed_all set_rng_state
            set_rng_state_all
        """,
        "torch.xpu.streams": """
            Event Stream
        """,
    },
}

# PyTorch's modules among them that gradiron has no file for, by the module that they are in.
WITHOUT_FILE = {
    "torch._C": "_autograd _fft _linalg _nested _profiler _sparse _special",
    "torch.ao.quantization": "stubs",
    "torch.cuda": "memory streams",
    "torch.distributed.checkpoint": "api state_dict_loader state_dict_saver",
    "torch.distributed.elastic.multiprocessing.errors": "error_handler handlers",
    "torch.distributed.optim": "optimizer",
    "torch.distributed.pipelining": "_IR schedules stage",
    "torch.distributed.rpc": "api options",
    "torch.distributed.tensor.parallel": "api loss style",
    "torch.jit": "_async _freeze _fuser _script _serialization _trace",
    "torch.masked": "_ops",
    "torch.profiler": "profiler",
    "torch.signal.windows": "windows",
    "torch.testing": "_comparison _creation",
    "torch.utils.benchmark": "utils",
    "torch.utils.benchmark.utils": "common compare timer",
    "torch.utils.data.datapipes": "_decorator",
    "torch.utils.data.datapipes.iter": "callable combinatorics combining grouping selecting sharding utils",
    "torch.utils.data.datapipes.map": "callable combinatorics combining grouping utils",
}
